// insert_rows: inserts many windows into one tensor, row by row, in blocks of 16 bytes at any byte offset.
//
//   invocation n  ->  blocks of piece n (see Piece)
//   row r         ->  row r % window_size of window r / window_size
//
// A row is the last dimension in use: contiguous on both sides, with one or more channels per index, forwards or with
// reversed indices. Writes only blocks that are wholly inside a row; insert_words writes row heads and tails.
//
// Needs disjoint windows, or winners, and bindings of whole blocks; where no row is clipped and pieces are contiguous,
// at least max(each, 1) whole blocks in each row, at any alignment.

@group(0) @binding(0) var<uniform> copy: Windows;

override element_bytes: u32 = 4u; // bytes per element, kept in order in a reversed row: 1, 2, 4, 8 or 16
override clipped: bool = true;    // whether some row is not written, or in part, or has fewer whole blocks than a piece

@compute @workgroup_size(workgroup_size)
fn insert_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (piece.left_over) {
        return;
    }
    let row = find_tensor_row(piece.row);
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
