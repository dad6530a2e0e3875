// last_writer_indices: the last-writer pass of a scatter: for each element, the number of the last index that names it.
//
//   invocation n  ->  the indices of piece n (see IndexedPiece), in the dimensions of the indices
//   new_winners[element] = 1 + the greatest number of an index that names the element
//
// Winners of elements that no index names stay 0.

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(2) var<storage, read_write> new_winners: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn last_writer_indices(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    var element = piece.first;
    for (var k = 0u; k < each; k++) {
        let reached = find_offsets(piece, element);
        if (is_one(piece, k) && reached.inside) {
            atomicMax(&new_winners[element.winner + reached.places], element.number + 1u);
        }
        element = after(element, piece.step);
    }
}
