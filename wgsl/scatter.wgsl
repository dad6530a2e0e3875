// scatter: elements of 4, 8 and 16 bytes written at indices. One invocation copies some elements of a row.
//
//   invocation n  ->  the elements of piece n, as indexed_pieces says
//
// What is written lies apart, unless claims say which of several stays.

override element_bytes: u32 = 4u; // bytes an element: 4, 8 or 16

@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn scatter(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    let words = element_bytes / 4u; // of an element
    for (var k = 0u; k < each; k++) {
        let element = find_indexed_element(piece, k);
        if (is_written(element)) {
            let first = (element.target_element + element.further) * words;
            for (var i = 0u; i < words; i++) {
                target_words[first + i] = source_words[element.source_element * words + i];
            }
        }
    }
}
