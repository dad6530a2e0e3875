// scatter_subword: scatters sub-word elements to indices. One invocation copies up to `each` elements of a row.
//
//   invocation n  ->  the elements of piece n (see IndexedPiece)
//
// Of equal indices, one value stays. Needs striped pieces: contiguous ones repeat elements, and invocations that write
// the same bits take turns.

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(4) var<storage, read> winners: array<u32>; // for each element, 1 + number of its last index

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@compute @workgroup_size(workgroup_size)
fn scatter_subword(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    var element = piece.first;
    for (var k = 0u; k < each; k++) {
        let reached = find_offsets(piece, element);
        if (is_one(piece, k) && is_written(element, reached)) {
            write_subword(element.target_element + reached.elements, read_subword(element.source_element));
        }
        element = after(element, piece.step);
    }
}
