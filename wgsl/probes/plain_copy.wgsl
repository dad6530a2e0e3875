// Each invocation copies the word of its number: what a shader's way to memory takes, and nothing else. lavapipe
// compiles vectors half as long again.

@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32>;

@compute @workgroup_size(64)
fn plain_copy(@builtin(global_invocation_id) invocation: vec3<u32>) {
  target_[invocation.x] = source[invocation.x];
}
