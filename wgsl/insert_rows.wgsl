// insert_rows: many windows put into one tensor, row by row, in blocks of 16 bytes from any byte on.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   row r         ->  row r % window_size of window r / window_size
//   piece         ->  `each` blocks of the row: neighbours, or every pieces-th (see pieces)
//
// A row is the last dimension in use: neighbours on both sides, maybe several channels an index, forwards, or with
// the indices in reverse order. Only blocks that are all a row's are written; insert_words writes its ends.
//
// Needs windows of which no two have an index in common, or winners, and bindings of whole blocks; where none is clipped
// and pieces are contiguous, rows that hold `each` whole blocks, one at least, wherever they begin.

override element_bytes: u32 = 4u; // bytes of what keeps its order when a row goes backwards: 1, 2, 4, 8 or 16
override clipped: bool = true;    // whether some row is not written, or not all of it

@compute @workgroup_size(workgroup_size)
fn insert_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (is_left_over(piece, rows)) {
        return;
    }
    let row = find_tensor_row(piece.row, 16u);
    let behind = row.extent.whole_unit + piece.number * select(1u, each, contiguous);
    let inside = first_unit(piece, row.extent.whole_unit, row.extent.stop_unit);
    let first = select(inside, behind, clipped);
    for (var k = 0u; k < each; k++) {
        let block = first + k * unit_step();
        let winner = select(row.winner, copy.block_winners + block, in_parts);
        let inside = (contiguous && !clipped) || block < row.extent.stop_unit;
        if (inside && wins(winner, row.window)) {
            target_blocks[block] = block_of_row(row.source, row.backwards, block * 16u - row.start);
        }
    }
}
