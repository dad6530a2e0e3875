// masked_values: writes consecutive sub-word elements of the source to where a mask is true.
//
//   invocation n                        ->  elements 32 * n to 32 * n + 31 of the target
//   entry 2 * n of the index array      ->  their bits of the mask, that of the first one lowest
//   entry 2 * n + 1 of the index array  ->  true elements before them
//
// Needs one packed dimension on both sides, and a target that begins at a word. Elements whose bit is 0 keep their
// value: words are written in any case, since masked accesses are slower on CPU adapters. Behind the last word of the
// target, that word is written again with its value.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn masked_values(own: Invocation) {
    let number = invocation_number(own.group, own.groups, own.index);
    if (number >= copy.count) { return; }
    var bits = index_units[2u * number];
    var source = copy.source_offset + index_units[2u * number + 1u];
    let start = copy.target_offset + 32u * number;
    let last = copy.target_offset + copy.elements - 1u;
    let width = 8u * element_bytes;
    for (var k = 0u; k < 32u; k += elements_per_word()) {
        let word = min(start + k, last) / elements_per_word();
        var value = target_words[word];
        for (var i = 0u; i < elements_per_word(); i++) {
            let found = read_subword(source); // behind the last element beyond the binding
            let given = insertBits(value, found, i * width, width);
            value = select(value, given, (bits & 1u) == 1u);
            source += bits & 1u;
            bits >>= 1u;
        }
        target_words[word] = value;
    }
}

// Entry points pass its fields, not the struct: naga 29 provides num_workgroups on D3D12 in entry points only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,     // workgroup index, in each dimension of the grid
    @builtin(num_workgroups) groups: vec3<u32>,  // workgroups, in each dimension of the grid
    @builtin(local_invocation_index) index: u32, // index within the workgroup
}

override workgroup_size: u32 = 64u; // invocations

// The row-major index of a workgroup in the grid.
fn group_number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// The index of an invocation among all of the dispatch, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, index: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + index;
}

//   element c, an index of the sizes  ->  source_offset + dot(c, source strides), target_offset + dot(c, target strides)
//   table t                           ->  index i: entry table_offsets[t] + dot(c, table_strides[t] of the dimensions)
//
// Each table adds i * steps[t] elements to the offset on the indexed side: the source of a gather, the target of a
// scatter. A negative index counts once from the end of its dimension. True elements of a mask are in range.
struct Indexed {
    dimensions: array<IndexedDimension, 8>, // the first `rank` of them are in use
    table_offsets: vec4<u32>,               // indices, from the start of the binding
    extents: vec4<u32>,                     // size of the dimension that a table indexes
    wraps: vec4<u32>,                       // added to negative indices: the extent, or 0 where they are out of range
    steps: vec4<u32>,                       // elements per increment of the index, modulo 2^32
    winner_steps: vec4<u32>,                // winners per increment of the index
    firsts: vec4<u32>,                      // with `ranged`, the first index that the dispatch copies
    stops: vec4<u32>,                       // with `ranged`, one past the last index that the dispatch copies
    source_offset: u32,                     // elements, from the start of the binding, modulo 2^32
    target_offset: u32,                     // elements, from the start of the binding, modulo 2^32
    rank: u32,                              // dimensions in use, at least one
    count: u32,                             // rows: indices of all dimensions but the last
    elements: u32,                          // of all rows
    each: u32,                              // words per invocation
    pieces: u32,                            // invocations per row
    pieces_multiplier: u32,                 // of the divisor `pieces`
    pieces_shift: u32,                      // bits, for the same divisor
    rows: u32,                              // rows of a group, with `down`
    rows_multiplier: u32,                   // of the divisor `rows`
    rows_shift: u32,                        // bits, for the same divisor
}

struct IndexedDimension {
    size: u32,                // elements
    multiplier: u32,          // of the divisor `size`
    shift: u32,               // bits, for the same divisor
    source_stride: u32,       // elements, modulo 2^32
    target_stride: u32,       // elements, modulo 2^32
    winner_stride: u32,       // winners, where an element may be written twice
    number_stride: u32,       // index numbers, where an element may be written twice
    unused: u32,              // padding to 16 bytes
    table_strides: vec4<u32>, // entries of the index array of each table
}

@group(0) @binding(0) var<uniform> copy: Indexed;

// The words of an index that are loaded at once: both of an index of 8 bytes, for which modules declare vec2<u32>.
alias IndexUnit = u32;

@group(0) @binding(3) var<storage, read> index_units: array<IndexUnit>;

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// Elements per word; at least 1, since compilers reject division by 0 even where it never runs.
fn elements_per_word() -> u32 {
    return max(4u / element_bytes, 1u);
}

fn read_subword(source_element: u32) -> u32 {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    return extractBits(source_words[source_element / per_word], source_element % per_word * bits, bits);
}
