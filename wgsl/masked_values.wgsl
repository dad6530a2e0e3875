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

@group(0) @binding(0) var<uniform> copy: Indexed;
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
