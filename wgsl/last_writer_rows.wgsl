// last_writer_rows: the last-writer pass of rows: the last window that has all of a block of 16 bytes of the tensor, and for
// each index in other blocks the last window whose row begins or ends in one of these.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece                ->  every pieces-th block that the row touches, `each` at most
//   new_winners[index, block] = the greatest number of all windows that have it so
//
// So a byte belongs to the later one of two windows: that which has all of its block, and that which has its index.
// The number of a window counts from a base, as last_writer_windows says.

@group(0) @binding(2) var<storage, read_write> new_winners: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn last_writer_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (is_left_over(piece, rows)) {
        return;
    }
    let row = find_tensor_row(piece.row, 16u);
    let winner = copy.winner_base + row.window;
    let index_bytes = tensor_stride_of(copy.rank - 1u);
    for (var k = 0u; k < each; k++) {
        let block = row.extent.first_unit + piece.number + k * copy.pieces;
        if (block * 16u < row.extent.stop) {
            var place = copy.block_winners + block;
            var last = place;
            if (block < row.extent.whole_unit || block >= row.extent.stop_unit) {
                let start = max(row.extent.start, block * 16u);
                let stop = min(row.extent.stop, block * 16u + 16u);
                place = row.winner + (start - row.start) / index_bytes;
                last = row.winner + (stop - row.start - 1u) / index_bytes;
            }
            for (; place <= last; place++) {
                atomicMax(&new_winners[place], winner);
            }
        }
    }
}
