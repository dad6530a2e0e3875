// claim_rows: the last-writer pass of rows: the last window that has all of a block of 16 bytes of the tensor, and for
// each index in other blocks the last window whose row begins or ends in one of these.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece                ->  every pieces-th block that the row touches, `each` at most
//   claims[index, block] = the greatest claim of all windows that have it so
//
// So a byte belongs to the later one of two windows: that which has all of its block, and that which has its index.
// A claim is the number of a window plus a base, as claim_windows says.

@group(0) @binding(2) var<storage, read_write> claims: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn claim_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (is_left_over(piece, rows)) {
        return;
    }
    let row = find_tensor_row(piece.row, 16u);
    let claim = copy.claim_base + row.window;
    let index_bytes = tensor_stride_of(copy.rank - 1u);
    for (var k = 0u; k < each; k++) {
        let block = row.extent.first_unit + piece.number + k * copy.pieces;
        if (block * 16u < row.extent.stop) {
            var place = copy.block_claims + block;
            var last = place;
            if (block < row.extent.whole_unit || block >= row.extent.stop_unit) {
                let start = max(row.extent.start, block * 16u);
                let stop = min(row.extent.stop, block * 16u + 16u);
                place = row.claim + (start - row.start) / index_bytes;
                last = row.claim + (stop - row.start - 1u) / index_bytes;
            }
            for (; place <= last; place++) {
                atomicMax(&claims[place], claim);
            }
        }
    }
}
