// shifted_ends: the blocks at the ends of a row, put together of two rows and of what they held.

// A block at an end of a row, together with what the next row has in it. Reads beyond a row are masked out.
fn copy_edge_block(block: u32, piece: Piece, extent: Extent, place: Place) {
    let next = find_place(piece.row + 1u, copy.rank - 1u);
    let from_next = mask_from(next.target_element * element_nbytes, block);
    let following = select(vec4(0u), from_next, piece.row + 1u < copy.count);
    let own_block = read_block(find_source(place, block));
    write_edge(block, own_block, mask_of(extent, block), read_block(find_source(next, block)), following);
}

// The blocks at the ends of a piece's row that are the piece's to write.
fn copy_ends(piece: Piece, extent: Extent, place: Place) {
    let size_nbytes = extent.stop - extent.start;
    let before = find_place(piece.row - 1u, copy.rank - 1u).target_element * element_nbytes + size_nbytes;
    let edges = find_edges(piece, extent, 16u, piece.row > 0u && before > extent.first_unit * 16u);
    var edge = edges.first;
    for (var left = edges.count; left > 0u; left--) {
        copy_edge_block(edge, piece, extent, place);
        edge = extent.stop_unit;
    }
}
