// row_ends: the blocks of 16 bytes at the heads and tails of unaligned rows that shifted_rows or shifted_grid copies.
//
//   invocation n  ->  piece n % 2 of row n / 2: 0 is the block with the row's head, 1 the block with its tail
//
// Needs target strides in descending order, each larger than the extent of all dimensions after it, the last one 1, and
// bindings of whole blocks.

@group(0) @binding(0) var<uniform> copy: Copy;

@compute @workgroup_size(workgroup_size)
fn row_ends(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (piece.left_over) {
        return;
    }
    let last = copy.rank - 1u;
    let place = find_place(piece.row, last);
    let extent = find_row_extent(place);
    let before = find_row_extent(find_place(piece.row - 1u, last)); // the row before, modulo 2^32 of the first one
    let edges = find_edges(piece, extent, 16u, piece.row > 0u && before.stop > extent.first_unit * 16u);
    if (edges.count == 0u) {
        return;
    }
    let block = edges.first; // at most one per piece, the head or the tail
    let next = find_place(piece.row + 1u, last);
    let from_next = mask_from(next.target_element * copy.element_bytes, block);
    let following = select(vec4(0u), from_next, piece.row + 1u < copy.count);
    let distance = u32(abs(bitcast<i32>(source_stride_of(last))));
    // Bytes outside of a row are masked below.
    let own_block = read_block(find_source(place, block, distance), distance);
    var next_block = vec4(0u);
    if (any(following != vec4(0u))) {
        next_block = read_block(find_source(next, block, distance), distance);
    }
    write_edge(block, own_block, mask_of(extent.start, extent.stop, block), next_block, following);
}
