// shifted_rows: contiguous target rows from source elements at a stride of 1, 2 or 4, forwards or reversed, of 1 to 8
// bytes, in blocks of 16 bytes read at any byte offset.
//
//   invocation n  ->  blocks of piece n (see Piece)
//
// Writes whole blocks only; row_ends writes the blocks that rows share. Needs a last target stride of 1, at least
// max(each, 1) whole blocks in each row at any alignment, and bindings of whole blocks.

@group(0) @binding(0) var<uniform> copy: Copy;

override distance: u32 = 1u; // absolute source stride of a row: 1, 2 or 4 elements

// Copies consecutive blocks at a distance of 1. Each source block is loaded once: a target block uses it second, the
// next target block first.
fn copy_neighbours(first: u32, source: u32) {
    let forwards = is_forwards();
    let offset = source % 16u;
    let near_block = source / 16u + u32(!forwards && offset != 0u);
    let far_block = source / 16u + u32(forwards && offset != 0u);
    var near = source_blocks[near_block];
    for (var k = 0u; k < each; k++) {
        let far = source_blocks[far_block + select(0u - k, k, forwards)]; // modulo 2^32
        let low = select(far, near, forwards && offset != 0u);
        target_blocks[first + k] = in_order(join(low, select(near, far, forwards), offset));
        near = far;
    }
}

@compute @workgroup_size(workgroup_size)
fn shifted_rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (piece.left_over) {
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
