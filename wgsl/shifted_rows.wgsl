// shifted_rows: contiguous target rows whose source elements are 1, 2 or 4 elements apart, forwards or backwards, of
// any width below 16 bytes, in blocks of 16 bytes that begin at any byte of the source.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` blocks of the row: neighbours, or every pieces-th (see pieces)
//
// Writes whole blocks only; row_ends writes the blocks that a row shares. Needs a last target stride of 1, and
// rows that hold `each` whole blocks, one at least, wherever they begin, and bindings of whole blocks.

override distance: u32 = 1u; // source elements from one of a row to the next, forwards or backwards: 1, 2 or 4

// Copies neighbouring blocks at a distance of 1. Each source block is loaded once: it is the far one of a target block,
// and the near one of the next.
fn copy_neighbours(first: u32, source: u32) {
    let forwards = is_forwards();
    let offset = source % 16u;
    let near_block = source / 16u + u32(!forwards && offset != 0u);
    let far_block = source / 16u + u32(forwards && offset != 0u);
    var near = source_blocks[near_block];
    for (var k = 0u; k < each; k++) {
        let far = source_blocks[far_block + select(0u - k, k, forwards)];
        let low = select(far, near, forwards && offset != 0u);
        target_blocks[first + k] = in_order(join(low, select(near, far, forwards), offset));
        near = far;
    }
}

@compute @workgroup_size(workgroup_size)
fn shifted_rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let place = find_place(piece.row, copy.rank - 1u);
    let extent = find_row_extent(place);
    let first = first_unit(piece, extent.whole_unit, extent.stop_unit);
    if (contiguous && distance == 1u) {
        copy_neighbours(first, find_source(place, first, distance));
    } else {
        for (var k = 0u; k < each; k++) {
            let block = first + k * unit_step();
            if (contiguous || block < extent.stop_unit) {
                target_blocks[block] = read_block(find_source(place, block, distance), distance);
            }
        }
    }
}
