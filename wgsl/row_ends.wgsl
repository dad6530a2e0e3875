// row_ends: the first and last blocks of 16 bytes of rows that shifted_rows or shifted_grid copies, where rows begin or
// end inside of a block.
//
//   invocation n  ->  piece n % 2 of row n / 2: the block that holds the row's head, or its tail
//
// Needs target strides in descending order, each larger than the reach of all dimensions after it, the last one 1, and
// bindings of whole blocks.

@compute @workgroup_size(workgroup_size)
fn row_ends(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let last = copy.rank - 1u;
    let place = find_place(piece.row, last);
    let extent = find_row_extent(place);
    let before = find_row_extent(find_place(piece.row - 1u, last)); // the row before
    let edges = find_edges(piece, extent, 16u, piece.row > 0u && before.stop > extent.first_unit * 16u);
    if (edges.count == 0u) {
        return;
    }
    let block = edges.first; // a piece has one at most, the head or the tail
    let next = find_place(piece.row + 1u, last);
    let from_next = mask_from(next.target_element * copy.element_bytes, block);
    let following = select(vec4(0u), from_next, piece.row + 1u < copy.count);
    let distance = u32(abs(bitcast<i32>(source_stride_of(last))));
    // What is read outside of a row is masked.
    let own_block = read_block(find_source(place, block, distance), distance);
    var next_block = vec4(0u);
    if (any(following != vec4(0u))) {
        next_block = read_block(find_source(next, block, distance), distance);
    }
    write_edge(block, own_block, mask_of(extent, block), next_block, following);
}
