// window_rows: many windows of one tensor, row by row, in blocks of 16 bytes from any byte on.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   row r         ->  row r % window_size of window r / window_size
//   piece         ->  `each` blocks of the row: neighbours, or every pieces-th (see pieces)
//   first, last   ->  also the blocks that hold the row's ends
//
// A row is the last dimension in use: neighbours in the source, maybe several channels an index, or elements 2 or 4
// apart; forwards, or with the indices in reverse order.
//
// Needs a target whose rows follow each other without gaps, rows that hold `each` whole blocks, one at least, wherever
// they begin, windows in order where rows share blocks, and bindings of whole blocks.

override element_bytes: u32 = 4u; // bytes of what keeps its order when a row goes backwards: 1, 2, 4, 8 or 16
override filled: bool = true;     // whether some window leaves the input
override unaligned: bool = true;     // whether some row begins or ends inside a block
override distance: u32 = 1u;      // indices of the source from one of a row to the next: 1, 2 or 4

struct Row {
    source: u32,     // bytes before its lowest one, from the start of the binding, modulo 2^32
    start: u32,      // bytes before its first one in the target, from the start of the binding
    backwards: bool, // whether its indices go in reverse order
    low: u32,        // bytes of it before those that the input has
    high: u32,       // bytes of it before the end of those
}

fn find_row(number: u32) -> Row {
    let window = divide(number, copy.window_multiplier, copy.window_shift);
    let rest = number - window * copy.window_size;
    let pick = find_pick(window);
    let last = copy.rank - 1u;
    let start = copy.batch_offset + pick.number * copy.window_stride + rest * copy.row_bytes;
    let place = find_window_place(pick, rest, last);
    let high = select(0u, copy.row_bytes, place.inside || !filled);
    var row = Row(place.tensor, start, is_backwards(pick, last), 0u, high);
    let offset = find_offset(pick, last);
    let index_bytes = tensor_stride_of(last);
    let size = bitcast<i32>(size_of(last));
    let step = bitcast<i32>(distance);
    let reach = (size - 1) * step; // from the lowest index to the highest
    let lowest = offset + select(0, bitcast<i32>(last_of(last)) - reach, row.backwards);
    row.source += bitcast<u32>(lowest) * index_bytes;
    if (filled) {
        let extent = bitcast<i32>(extent_of(last));
        let before = u32(clamp((step - 1 - lowest) / step, 0, size)); // indices that lie before the input
        let after = u32(clamp((lowest + reach - extent + step) / step, 0, size));
        row.low = select(before, after, row.backwards) * index_bytes;
        row.high -= min(row.high, select(after, before, row.backwards) * index_bytes);
    }
    return row;
}

// The block of a row of steps whose first byte is `position`.
fn block_of_steps(row: Row, position: u32) -> vec4<u32> {
    let ahead = select(position, copy.row_bytes - position - 16u, row.backwards);
    let source = row.source + ahead * distance;
    let value = gather_step(source / 16u, source % 16u, distance, element_bytes);
    return select(value, turn(value, element_bytes), row.backwards);
}

// The block of a row from byte `position` on, which may lie up to 15 before its first; bytes outside of the row have
// any value.
fn row_block(row: Row, position: u32) -> vec4<u32> {
    var value = vec4(0u);
    if (distance == 1u) {
        value = block_of_row(row.source, row.backwards, position);
    } else {
        value = block_of_steps(row, position);
    }
    if (filled) {
        let start = clamp(bitcast<i32>(row.low - position), 0, 16);
        let stop = clamp(bitcast<i32>(row.high - position), start, 16);
        let inside = mask(bitcast<u32>(start), bitcast<u32>(stop));
        value = (value & inside) | (copy.fill & ~inside);
    }
    return value;
}

// A block at an end of a row, together with what the next row has in it.
fn copy_edge_of_rows(block: u32, piece: Piece, extent: Extent, row: Row) {
    let next = row_block(find_row(piece.row + 1u), block * 16u - extent.stop);
    let shared_with_next = piece.row + 1u < copy.count * copy.window_size;
    let following = select(vec4(0u), mask_from(extent.stop, block), shared_with_next);
    write_edge(block, row_block(row, block * 16u - row.start), mask_of(extent, block), next, following);
}

@compute @workgroup_size(workgroup_size)
fn window_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (is_left_over(piece, rows)) {
        return;
    }
    let row = find_row(piece.row);
    let extent = find_extent(row.start, copy.row_bytes, 16u);
    let first = first_unit(piece, extent.whole_unit, extent.stop_unit);
    for (var k = 0u; k < each; k++) {
        let block = first + k * unit_step();
        if (contiguous || block < extent.stop_unit) {
            target_blocks[block] = row_block(row, block * 16u - row.start);
        }
    }
    if (unaligned) {
        let edges = find_edges(piece, extent, 16u, piece.row > 0u);
        var edge = edges.first;
        for (var left = edges.count; left > 0u; left--) {
            copy_edge_of_rows(edge, piece, extent, row);
            edge = extent.stop_unit;
        }
    }
}
