// slice1: the specification as a kernel, valid for every slice. One invocation copies one element.
//
//   invocation i  ->  c, the i-th index of the sizes in row-major order
//   target[target_offset + dot(c, target strides)] = source[source_offset + dot(c, source strides)]
//
// Sub-word elements share words with other invocations or with bytes outside the output, so the target is atomic: an
// invocation writes only the bits of its own element.

struct Copy {
    dimensions: array<Dimension, 8>, // the first `rank` of them are in use
    source_offset: u32,              // elements, from the start of the binding
    target_offset: u32,              // elements, from the start of the binding
    rank: u32,                       // dimensions in use
    count: u32,                      // elements
}

struct Dimension {
    size: u32,          // elements
    source_stride: u32, // elements, modulo 2^32: a negative stride wraps around
    target_stride: u32, // elements
    unused_0: u32,      // this and those below: of other kernels
    unused_1: u32,      // unused
    unused_2: u32,      // unused
    unused_3: u32,      // unused
    unused_4: u32,      // unused
}

override workgroup_size: u32 = 64u; // invocations
override element_bytes: u32 = 4u;   // bytes per element: 1, 2, 4, 8 or 16

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;

fn size_of(d: u32) -> u32 { return copy.dimensions[d].size; }
fn source_stride_of(d: u32) -> u32 { return copy.dimensions[d].source_stride; }
fn target_stride_of(d: u32) -> u32 { return copy.dimensions[d].target_stride; }

fn copy_words(source_element: u32, target_element: u32) {
    let words_per_element = element_bytes / 4u;
    for (var i = 0u; i < words_per_element; i++) {
        let word = source_words[source_element * words_per_element + i];
        atomicStore(&target_words[target_element * words_per_element + i], word);
    }
}

fn copy_part_of_word(source_element: u32, target_element: u32) {
    let per_word = max(4u / element_bytes, 1u); // elements per word; at least 1: compilers reject division by 0
    let bits = 8u * element_bytes;
    let value = extractBits(source_words[source_element / per_word], source_element % per_word * bits, bits);
    let shift = target_element % per_word * bits;
    let word = &target_words[target_element / per_word];
    let old = extractBits(atomicLoad(word), shift, bits);
    // No other invocation writes these bits, so an XOR with the differing ones sets them under any interleaving.
    atomicXor(word, (old ^ value) << shift);
}

@compute @workgroup_size(workgroup_size)
fn slice1(@builtin(workgroup_id) group: vec3<u32>,
          @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) index: u32) {
    let invocation = (group.y * groups.x + group.x) * workgroup_size + index;
    if (invocation >= copy.count) {
        return;
    }
    var rest = invocation;
    var source_element = copy.source_offset;
    var target_element = copy.target_offset;
    for (var d = copy.rank; d > 0u; d--) {
        let c = rest % size_of(d - 1u);
        rest /= size_of(d - 1u);
        source_element += c * source_stride_of(d - 1u);
        target_element += c * target_stride_of(d - 1u);
    }
    if (element_bytes >= 4u) {
        copy_words(source_element, target_element);
    } else {
        copy_part_of_word(source_element, target_element);
    }
}
