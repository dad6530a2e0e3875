// window_rows: copies many windows of one tensor, row by row, in blocks of 16 bytes read at any byte offset.
//
//   invocation n  ->  blocks of piece n (see Piece); of a row's first and last one also its head and tail: their words,
//                     or of smaller elements the blocks with them
//   row r         ->  row r % window_size of window r / window_size
//
// A row is the last dimension in use: contiguous in the source, with one or more channels per index, or at a stride of
// 2 or 4 elements; forwards or with reversed indices.
//
// Needs target rows without gaps, at least max(each, 1) whole blocks in each row at any alignment, windows in order
// where rows share blocks, and bindings of whole blocks.
//
// Of an input beyond the largest binding, each dispatch has a part, and takes the rows that begin in its first
// `segment` bytes; the part has these rows as a whole.

@group(0) @binding(0) var<uniform> copy: Windows;

override element_bytes: u32 = 4u; // bytes per element, kept in order in a reversed row: 1, 2, 4, 8 or 16
override unaligned: bool = true;  // whether some row begins or ends inside a block
override distance: u32 = 1u;      // source stride of a row: 1, 2 or 4 indices
override segmented: bool = false; // whether a part of the input is bound

struct Row {
    source: u32,     // its lowest source byte, from the start of the binding, modulo 2^32
    start: u32,      // its first target byte, from the start of the binding
    backwards: bool, // whether its indices are reversed
    low: u32,        // its first byte inside the input
    high: u32,       // one past its last byte inside the input
    first: u32,      // a source byte inside the input, from which on its others are; of a row outside, any
}

fn find_row(number: u32) -> Row {
    let last = copy.rank - 1u;
    let place = find_window_place(number, last);
    let backwards = is_backwards(place.pick, last);
    let high = select(0u, copy.row_bytes, place.inside || !filled);
    // Rows of a window follow one another in the batch: by its strides AMD takes 1.06 to 1.09 times as long.
    let rest = number - divide(number, copy.window_multiplier, copy.window_shift) * copy.window_size;
    let start = copy.batch_offset + place.pick.number * copy.window_stride + rest * copy.row_bytes;
    var row = Row(place.tensor, start, backwards, 0u, high, copy.tensor_offset);
    let offset = find_offset(place.pick, last);
    let index_bytes = copy.dimensions[last].tensor_stride;
    let size = bitcast<i32>(size_of(last));
    let step = bitcast<i32>(distance);
    let reach = (size - 1) * step; // highest index minus lowest
    let lowest = offset + select(0, bitcast<i32>(copy.dimensions[last].last) - reach, backwards);
    let extent = bitcast<i32>(copy.dimensions[last].extent);
    if (place.inside) {
        row.first = place.tensor + u32(clamp(lowest, 0, extent - 1)) * index_bytes;
    }
    row.source += bitcast<u32>(lowest) * index_bytes;
    if (filled) {
        let before = u32(clamp((step - 1 - lowest) / step, 0, size)); // indices before the input
        let after = u32(clamp((lowest + reach - extent + step) / step, 0, size));
        row.low = select(before, after, backwards) * index_bytes;
        row.high -= min(row.high, select(after, before, backwards) * index_bytes);
    }
    return row;
}

// Whether a row is in the part of the input that is bound.
fn is_bound(row: Row) -> bool {
    return !segmented || row.first < copy.segment;
}

// Reads the block at byte `position` of a strided row.
fn block_of_steps(row: Row, position: u32) -> vec4<u32> {
    let ahead = select(position, copy.row_bytes - position - 16u, row.backwards);
    let source = row.source + ahead * distance;
    let value = gather_step(source / 16u, source % 16u, distance, element_bytes);
    return select(value, turn(value, element_bytes), row.backwards);
}

// Reads the block at byte `position`, at least -15, of a row; bytes outside of the row are arbitrary.
fn row_block(row: Row, position: u32) -> vec4<u32> {
    var value = vec4(0u);
    if (distance == 1u) {
        value = block_of_row(row.source, row.backwards, position);
    } else {
        value = block_of_steps(row, position);
    }
    return filled_block(value, position, row.low, row.high);
}

// Writes the part of a row that is in a block: words of their own, or bytes of words that no other invocation writes.
fn write_part(block: u32, extent: Extent, row: Row) {
    let value = row_block(row, block * 16u - row.start);
    let inside = mask_of(extent.start, extent.stop, block);
    if (!whole_words) {
        write_edge(block, value, inside, vec4(0u), vec4(0u));
        return;
    }
    for (var i = 0u; i < 4u; i++) {
        if (inside[i] != 0u) {
            target_blocks[block][i] = value[i];
        }
    }
}

// Writes the block with a row's tail, and the next row's bytes in it.
fn write_tail_and_next(piece: Piece, extent: Extent, row: Row) {
    let block = extent.stop_unit;
    // Of the last row modulo 2^32 and beyond the binding, then unused.
    let next_row = find_row(piece.row + 1u);
    let next = row_block(next_row, block * 16u - extent.stop);
    let shared_with_next = piece.row + 1u < copy.count * copy.window_size && is_bound(next_row);
    let following = select(vec4(0u), mask_from(extent.stop, block), shared_with_next);
    let own_mask = mask_of(extent.start, extent.stop, block);
    write_edge(block, row_block(row, block * 16u - row.start), own_mask, next, following);
}

@compute @workgroup_size(workgroup_size)
fn window_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (piece.left_over) {
        return;
    }
    let row = find_row(piece.row);
    if (!is_bound(row)) {
        return;
    }
    let extent = find_extent(row.start, copy.row_bytes, 16u);
    let first = first_unit(piece, extent.whole_unit, extent.stop_unit);
    let position = first * 16u - row.start;
    let source = row.source + position;
    let carried = contiguous && distance == 1u && !mirrored; // whether each source block is loaded once
    var near = vec4(0u);
    if (carried) {
        near = block_after(source, 0u);
    }
    for (var k = 0u; k < each; k++) {
        let block = first + k * unit_step();
        if (carried) {
            let far = block_after(source, k + 1u);
            target_blocks[block] = filled_block(join(near, far, source % 16u), position + 16u * k, row.low, row.high);
            near = far;
        } else if (contiguous || block < extent.stop_unit) {
            target_blocks[block] = row_block(row, block * 16u - row.start);
        }
    }
    if (unaligned) {
        var is_first = piece.number == 0u && (whole_words || piece.row == 0u);
        if (segmented && piece.number == 0u && !is_first) {
            is_first = !is_bound(find_row(piece.row - 1u)); // else that one writes this one's head
        }
        if (is_first && extent.first_unit < extent.whole_unit) {
            write_part(extent.first_unit, extent, row);
        }
        if (piece.number + 1u == copy.pieces && extent.stop_unit * 16u < extent.stop) {
            if (whole_words) {
                write_part(extent.stop_unit, extent, row);
            } else {
                write_tail_and_next(piece, extent, row);
            }
        }
    }
}
