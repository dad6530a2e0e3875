// sized_windows: copies many windows of different sizes, between a tensor and places of their own, in blocks of 16 bytes
// of the target.
//
//   invocation n  ->  piece n - f of the window with the greatest first piece f up to n
//   piece p       ->  piece p % pieces of unit p / pieces of the window: `each` of the blocks that begin in the unit
//   unit          ->  consecutive rows of a run, which the last of its blocks may exceed
//
// An invocation owns whole blocks inside of a run, and shares the first and the last with other runs or with bytes
// outside all windows: it writes words of these. Words that runs of a dispatch may share are left to sized_ends.

@group(0) @binding(0) var<uniform> copy: Sized;

const PIECES: u32 = 1u;     // column: divisor, pieces per unit
const EACH: u32 = 4u;       // column: blocks per piece
const UNITS: u32 = 5u;      // column: divisor, units per run
const UNIT_BYTES: u32 = 8u; // column: bytes of all units of a run but its last

override element_bytes: u32 = 4u; // bytes per element, where they are apart in the source: 1, 2, 4, 8 or 16
override apart: bool = false;     // whether elements of a row are apart, or reversed, in the source

// The 16 bytes at byte `position` of a row, at least -15, whose elements are apart; bytes outside of the row are arbitrary.
fn gathered_block(row: SizedRow, position: u32, distance: u32) -> vec4<u32> {
    var value = vec4(0u);
    let bytes = min(element_bytes, 4u); // per element within a word
    for (var i = 0u; i < 16u; i += bytes) {
        let element = bitcast<u32>(bitcast<i32>(position + i) / i32(element_bytes));
        let place = row.source + element * distance + i % element_bytes; // modulo 2^32
        let read = extractBits(source_block(place / 16u)[place / 4u % 4u], place % 4u * 8u, bytes * 8u);
        value |= select(vec4(0u), vec4(read << (i % 4u * 8u)), vec4(0u, 1u, 2u, 3u) == vec4(i / 4u));
    }
    return value;
}

// Whether a block is from byte `start` of the target on, and ends before byte `stop`.
fn is_whole(block: u32, start: u32, stop: u32) -> bool {
    return block * 16u >= start && block * 16u + 16u <= stop;
}

// Whether all bytes of a block are before byte `low` of the target, or from byte `high` on.
fn is_outside(block: u32, low: u32, high: u32) -> bool {
    return block * 16u + 16u <= low || block * 16u >= high;
}

// Writes the bytes from `start` to before `stop` of a block, without those of words that runs may share.
fn write_words(block: u32, value: vec4<u32>, start: u32, stop: u32) {
    let inside = mask_of(start, stop, block);
    for (var i = 0u; i < 4u; i++) {
        if (inside[i] > select(0xfffffffeu, 0u, copy.own_words != 0u)) {
            target_blocks[block][i] = (target_blocks[block][i] & ~inside[i]) | (value[i] & inside[i]);
        }
    }
}

// Whether a block of a row from `start` to before `stop` is inside of the tensor, or outside.
fn needs_no_mask(block: u32, start: u32, stop: u32, low: u32, high: u32) -> bool {
    return is_whole(block, start, stop) && (is_outside(block, low, high) || (!apart && is_whole(block, low, high)));
}

@compute @workgroup_size(workgroup_size)
fn sized_windows(own: Invocation) {
    // Surplus invocations go through the loops with nothing to copy: after a return, OpenGL of Mesa 26.1 never ends these.
    let number = invocation_number(own.group, own.groups, own.index);
    let n = min(number, copy.pieces - 1u);
    let window = find_window(n, group_number(own.group, own.groups));
    let added = offset_places(window);
    let piece = n - table[window + FIRST_PIECE];
    let unit = divide(piece, table[window + PIECES + 1u], table[window + PIECES + 2u]);
    let run = divide(unit, table[window + UNITS + 1u], table[window + UNITS + 2u]);
    let unit_in_run = unit - run * table[window + UNITS];
    let run_row = run * table[window + RUN_ROWS];
    let start = find_sized_row(window, run_row, added).start; // of the run
    let row_bytes = table[window + ROW_BYTES];
    let end = start + table[window + RUN_ROWS] * row_bytes;
    let unit_start = start + unit_in_run * table[window + UNIT_BYTES];
    let whole = select((unit_start + 15u) / 16u, start / 16u, unit_in_run == 0u); // its first block
    let first = whole + (piece - unit * table[window + PIECES]) * table[window + EACH];
    let begin = max(start, first * 16u);
    let unit_stop = min(end, (unit_start + table[window + UNIT_BYTES] + 15u) / 16u * 16u);
    let piece_stop = min(unit_stop, (first + table[window + EACH]) * 16u);
    let stop = select(piece_stop, 0u, number >= copy.pieces);
    var head = vec4(0u);
    var value = vec4(0u);
    var place = begin;
    while (place < stop) {
        let row_in_run = divide(place - start, table[window + ROW_BYTES + 1u], table[window + ROW_BYTES + 2u]);
        let row = find_sized_row(window, run_row + row_in_run, added);
        let row_start = start + row_in_run * row_bytes;
        let row_stop = min(row_start + row_bytes, stop);
        let source = row.source - row_start; // of byte 0 of the target
        let low = row_start + row.low;
        let high = row_start + row.high;
        var block = place / 16u;
        while (block * 16u < row_stop) {
            // Blocks outside of the tensor, blocks inside, and the others: on CPUs a loop that no invocation needs takes
            // no time, a branch takes its own.
            for (; filled && is_whole(block, place, row_stop) && is_outside(block, low, high); block++) {
                target_blocks[block] = copy.fill;
            }
            var near = block_after(source + block * 16u, 0u);
            for (; filled && !apart && is_whole(block, max(place, low), min(high, row_stop)); block++) {
                let far = block_after(source + block * 16u, 1u);
                target_blocks[block] = join(near, far, source % 16u);
                near = far;
            }
            for (; block * 16u < row_stop && !(filled && needs_no_mask(block, place, row_stop, low, high)); block++) {
                var read: vec4<u32>;
                if (apart) {
                    read = gathered_block(row, block * 16u - row_start, table[window + DISTANCE]);
                } else {
                    let far = block_after(source + block * 16u, 1u);
                    read = join(near, far, source % 16u);
                    near = far;
                }
                read = filled_block(read, block * 16u - row_start, row.low, row.high);
                if (block * 16u < place) { // after the end of the row before, or bytes outside of the run
                    let own_mask = mask_from(place, block);
                    read = (value & ~own_mask) | (read & own_mask);
                }
                value = read;
                if (block * 16u < start) {
                    head = value;
                } else if (block * 16u + 16u <= row_stop) {
                    target_blocks[block] = value;
                }
            }
        }
        place = row_stop;
    }
    if (begin >= stop) { return; }
    if (begin == start && start % 16u != 0u) { write_words(start / 16u, head, start, stop); }
    if (stop % 16u != 0u && stop / 16u * 16u >= start) { write_words(stop / 16u, value, stop / 16u * 16u, stop); }
}
