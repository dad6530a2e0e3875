// packed_words: elements of 4 bytes that lie one after another on both sides.
//
//   invocation i  ->  the i-th element

override element_bytes: u32 = 4u; // bytes an element: 4
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn packed_words(own: Invocation) {
    let i = invocation_number(own.group, own.groups, own.index);
    if (i < copy.count) {
        target_words[copy.target_offset + i] = source_words[copy.source_offset + i];
    }
}
