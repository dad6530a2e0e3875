// sized_ends: copies the words of windows of different sizes that are of a run in part: its first and its last one.
//
//   invocation n  ->  run n - f of the window with the greatest first piece f up to n
//
// sized_windows has written all other words before.

@group(0) @binding(0) var<uniform> copy: Sized;

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@compute @workgroup_size(workgroup_size)
fn sized_ends(own: Invocation) {
    // Surplus invocations have no words to copy: after a return, OpenGL of Mesa 26.1 may not end loops in loops.
    let number = invocation_number(own.group, own.groups, own.index);
    let n = min(number, copy.pieces - 1u);
    let window = find_window(n, group_number(own.group, own.groups));
    let added = offset_places(window);
    let run_row = (n - table[window + FIRST_PIECE]) * table[window + RUN_ROWS];
    let start = find_sized_row(window, run_row, added).start;
    let end = start + table[window + RUN_ROWS] * table[window + ROW_BYTES];
    let stop = select(end, 0u, number >= copy.pieces);
    let first = select(stop / 4u, start / 4u, start % 4u != 0u);
    for (var word = first; word * 4u < stop; word = max(word + 1u, stop / 4u)) {
        let low = max(start, word * 4u);
        let high = min(stop, word * 4u + 4u);
        var value = 0u;
        for (var byte = low; byte < high; byte += element_bytes) {
            let row_in_run = divide(byte - start, table[window + ROW_BYTES + 1u], table[window + ROW_BYTES + 2u]);
            let row = find_sized_row(window, run_row + row_in_run, added);
            let position = byte - start - row_in_run * table[window + ROW_BYTES];
            value |= element_of_row(row, position, table[window + DISTANCE]) << (byte % 4u * 8u);
        }
        write_bits(word, value, below_byte(high - word * 4u) & ~below_byte(low - word * 4u));
    }
}

// The element at byte `position` of a row, or the fill outside of the tensor.
fn element_of_row(row: SizedRow, position: u32, distance: u32) -> u32 {
    let place = row.source + position / element_bytes * distance; // modulo 2^32
    let word = source_words[place / 4u]; // beyond the binding of elements outside of the tensor
    let inside = !filled || (position >= row.low && position < row.high);
    return extractBits(select(copy.fill.x, word, inside), select(0u, place % 4u * 8u, inside), 8u * element_bytes);
}
