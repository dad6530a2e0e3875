// gather: gathers elements of 4, 8 and 16 bytes at indices. One invocation copies up to `each` elements of a row.
//
//   invocation n  ->  the elements of piece n (see IndexedPiece)
//
// Indices are clamped to their range.

override element_bytes: u32 = 4u; // bytes per element: 4, 8 or 16

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn gather(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    let words = element_bytes / 4u; // of an element
    for (var k = 0u; k < each; k++) {
        let element = find_indexed_element(piece, k);
        if (element.is_one) {
            let source = (element.source_element + element.further) * words;
            for (var i = 0u; i < words; i++) {
                target_words[element.target_element * words + i] = source_words[source + i];
            }
        }
    }
}
