// scatter_subword: elements of 1 and 2 bytes written at indices. One invocation copies some elements of a row.
//
//   invocation n  ->  the elements of piece n, as indexed_pieces says
//
// Words are shared with other invocations, or with bytes that nothing is written to, so the target is atomic: an
// invocation changes the bits of its own elements and no others. Needs pieces that are not contiguous: bits that are
// written twice at once would be lost.

override element_bytes: u32 = 1u; // bytes an element: 1 or 2

@compute @workgroup_size(workgroup_size)
fn scatter_subword(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    for (var k = 0u; k < each; k++) {
        let element = find_indexed_element(piece, k);
        if (is_written(element)) {
            write_subword(element.target_element + element.further, read_subword(element.source_element));
        }
    }
}
