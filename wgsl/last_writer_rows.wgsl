// last_writer_rows: the last-writer pass of rows: for each block of 16 bytes of the tensor, the last window that covers
// all of it; for each index, the last window that covers it with a row that covers only a part of the block.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece p       ->  blocks p, p + pieces, ... of those that the row touches, at most copy.each
//   new_winners[block or index] = the greatest number of these windows
//
// The last writer of a byte is the later of two windows: the winner of its block and the winner of its index.
// Numbers of windows start at a base (see last_writer_windows).

@group(0) @binding(0) var<uniform> copy: Windows;
@group(0) @binding(2) var<storage, read_write> new_winners: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn last_writer_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (piece.left_over) {
        return;
    }
    let row = find_tensor_row(piece.row);
    let winner = copy.winner_base + row.window;
    for (var k = 0u; k < copy.each; k++) {
        let block = row.extent.first_unit + piece.number + k * copy.pieces;
        if (block * 16u < row.extent.stop) {
            var place = copy.block_winners + block;
            var last = place;
            if (block < row.extent.whole_unit || block >= row.extent.stop_unit) {
                let start = max(row.extent.start, block * 16u);
                let stop = min(row.extent.stop, block * 16u + 16u);
                place = row.winner + divide_by(start - row.start, copy.rank - 1u);
                last = row.winner + divide_by(stop - row.start - 1u, copy.rank - 1u);
            }
            for (; place <= last; place++) {
                atomicMax(&new_winners[place], winner);
            }
        }
    }
}
