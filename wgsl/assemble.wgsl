// assemble: elements of 1 and 2 bytes, without atomics. One invocation owns one whole word of the target.
//
//   invocation i  ->  the word target_offset / lanes + i, of `lanes` elements
//
// For each lane it asks which output index lives there, if any, and gathers that element. Bytes that belong to
// no output index keep their value. Needs target strides in descending order, each larger than the extent of
// all dimensions after it, so that dividing by them in turn finds the index.

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // invocations with work, here words
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 1 or 2

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

struct Found {
    inside: bool,        // whether the target element is an output index
    source_element: u32, // where that index reads
}

fn find(target_element: u32) -> Found {
    var rest = target_element - copy.target_offset; // before the offset it wraps around, beyond every size
    var source_element = copy.source_offset;
    var inside = true;
    for (var d = 0u; d < copy.rank; d++) {
        let i = d / 4u;
        let j = d % 4u;
        let c = rest / copy.target_strides[i][j];
        rest %= copy.target_strides[i][j];
        inside = inside && c < copy.sizes[i][j];
        source_element += c * copy.source_strides[i][j];
    }
    return Found(inside && rest == 0u, source_element);
}

@compute @workgroup_size(workgroup_size)
fn assemble(@builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) lane: u32) {
    let invocation = (group.y * groups.x + group.x) * workgroup_size + lane;
    if (invocation >= copy.count) {
        return;
    }
    let lanes = 4u / element_nbytes;
    let bits = 8u * element_nbytes;
    let target_word = copy.target_offset / lanes + invocation;
    var word = target_words[target_word];
    for (var i = 0u; i < lanes; i++) {
        let found = find(target_word * lanes + i);
        if (found.inside) {
            let source_word = source_words[found.source_element / lanes];
            let value = extractBits(source_word, found.source_element % lanes * bits, bits);
            word = insertBits(word, value, i * bits, bits);
        }
    }
    target_words[target_word] = word;
}
