// sized_windows: copies many windows of different sizes, between a tensor and places of their own, in blocks of 16 bytes
// of the target.
//
//   invocation n  ->  piece n - f of the window with the greatest first piece f up to n
//   piece p       ->  piece p % pieces of unit p / pieces of the window: `each` of the blocks that begin in the unit
//   unit          ->  consecutive rows of a run, which the last of its blocks may exceed
//
// An invocation owns whole blocks inside of a run, and shares the first and the last with other runs or with bytes
// outside all windows: it writes words of these. Words that runs of a dispatch may share are left to sized_ends.

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

// A block of a row, with the fill in place of its bytes outside of the tensor.
fn filled_block(row: SizedRow, position: u32, block: vec4<u32>) -> vec4<u32> {
    if (!filled) { return block; }
    let low = clamp(bitcast<i32>(row.low - position), 0, 16);
    let high = clamp(bitcast<i32>(row.high - position), low, 16);
    let read = mask(bitcast<u32>(low), bitcast<u32>(high));
    return (block & read) | (copy.fill & ~read);
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
    let base = block * 16u;
    let inside = mask(clamp(start, base, base + 16u) - base, clamp(stop, base, base + 16u) - base);
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
                read = filled_block(row, block * 16u - row_start, read);
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

// Entry points pass its fields, not the struct: naga 29 provides num_workgroups on D3D12 in entry points only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,     // workgroup index, in each dimension of the grid
    @builtin(num_workgroups) groups: vec3<u32>,  // workgroups, in each dimension of the grid
    @builtin(local_invocation_index) index: u32, // index within the workgroup
}

override workgroup_size: u32 = 64u; // invocations

// The row-major index of a workgroup in the grid.
fn group_number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// The index of an invocation among all of the dispatch, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, index: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + index;
}

// The upper half of the 64-bit product.
fn multiply_high(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let carry = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (carry >> 16u);
}

// n divided by a divisor, for n < 2^31.
fn divide(n: u32, multiplier: u32, shift: u32) -> u32 {
    return (multiply_high(n, multiplier) + n) >> shift;
}

override offset_bytes: u32 = 8u;     // bytes per offset: 1, 2, 4 or 8

override offset_signed: bool = true; // whether offsets are signed

@group(0) @binding(0) var<uniform> copy: Sized;

@group(0) @binding(4) var<storage, read> offset_words: array<u32>;

// Reads an offset as an i32, saturated.
fn read_offset(index: u32) -> i32 {
    if (offset_bytes == 8u) {
        let low = offset_words[2u * index];
        let high = offset_words[2u * index + 1u];
        let negative = offset_signed && (high >> 31u) == 1u;
        let fits = high == select(0u, 0xffffffffu, negative) && (low >> 31u) == u32(negative);
        return select(select(0x7fffffff, -0x7fffffff - 1, negative), bitcast<i32>(low), fits);
    }
    let per_word = 4u / min(offset_bytes, 4u);
    let bits = 8u * min(offset_bytes, 4u);
    let word = offset_words[index / per_word];
    let value = extractBits(word, index % per_word * bits, bits);
    let signed_value = extractBits(bitcast<i32>(word), index % per_word * bits, bits);
    return select(bitcast<i32>(min(value, 0x7fffffffu)), signed_value, offset_signed);
}

// A place is a byte from the start of a binding. A row is contiguous in the target; a run is one or more rows of a window
// that follow one another without gaps in the target. The table has `columns` words for each window, then one for each
// workgroup and one more: the window of its first piece.
struct Sized {
    fill: vec4<u32>, // the value outside of the tensor, repeated
    count: u32,      // windows
    pieces: u32,     // of all windows
    rank: u32,       // dimensions before those of a row
    columns: u32,    // words of the table per window
    offsets: u32,    // offsets per window, where they are in device memory
    own_words: u32,  // 1 if no two runs share words, 0 if words that are of a run in part are left to sized_ends
    unused_0: u32,   // padding to 16 bytes
    unused_1: u32,   // padding to 16 bytes
}

@group(0) @binding(3) var<storage, read> table: array<u32>;

// Columns of the table; sized_windows has further ones. A divisor is followed by its multiplier and its shift.
const FIRST_PIECE: u32 = 0u; // pieces of all windows before

const RUN_ROWS: u32 = 9u;    // rows per run

const ROW_BYTES: u32 = 10u;  // divisor: bytes per row

const SOURCE: u32 = 13u;     // place of the first element, modulo 2^32

const TARGET: u32 = 14u;     // place of the first element, modulo 2^32

const DISTANCE: u32 = 15u;   // source places between elements of a row, modulo 2^32

const NUMBER: u32 = 16u;     // window index, among all windows

const LOW: u32 = 17u;        // bytes of a row before those inside of the tensor

const HIGH: u32 = 18u;       // bytes of a row up to the end of those

const DIMENSIONS: u32 = 19u; // COLUMNS words for each: divisor, the rows per index; source and target places per index, and

const COLUMNS: u32 = 7u;     // the first index inside of the tensor and one past the last

override filled: bool = false; // whether some window extends outside of the tensor

override placed: u32 = 0u;     // side with offsets in device memory: 1 the source, 2 the target, 0 neither

// A row, as bytes.
struct SizedRow {
    source: u32, // place of its first element, modulo 2^32
    start: u32,  // place of its first byte in the target
    low: u32,    // first byte inside of the tensor, from the row's start
    high: u32,   // one past the last
}

// The position in the table of the window that has piece n, among those of a workgroup.
fn find_window(n: u32, group: u32) -> u32 {
    let of_groups = copy.count * copy.columns;
    var window = table[of_groups + group];
    var stop = table[of_groups + group + 1u] + 1u;
    while (stop - window > 1u) {
        let middle = (window + stop) / 2u;
        let is_later = table[middle * copy.columns + FIRST_PIECE] > n;
        window = select(middle, window, is_later);
        stop = select(stop, middle, is_later);
    }
    return window * copy.columns;
}

// The places that a window's offsets in device memory add, if there are some.
fn offset_places(window: u32) -> u32 {
    var places = 0u;
    let first = window + DIMENSIONS + copy.rank * COLUMNS;
    var number = table[window + NUMBER] * copy.offsets;
    for (var column = first; column < first + 2u * copy.offsets; column += 2u) { // the greatest offset, places per index
        places += u32(clamp(read_offset(number), 0, bitcast<i32>(table[column]))) * table[column + 1u]; // modulo 2^32
        number++;
    }
    return places;
}

fn find_sized_row(window: u32, number: u32, added: u32) -> SizedRow {
    var row = SizedRow(table[window + SOURCE], table[window + TARGET], table[window + LOW], table[window + HIGH]);
    row.source += select(0u, added, placed == 1u);
    row.start += select(0u, added, placed == 2u);
    var rest = number;
    // A loop that counts to copy.rank, or an `if` of uniforms alone: lavapipe of Mesa 22.3 compiles at each dispatch.
    let first = window + DIMENSIONS;
    for (var column = first; column < first + copy.rank * COLUMNS; column += COLUMNS) {
        let c = divide(rest, table[column + 1u], table[column + 2u]);
        rest -= c * table[column];
        row.source += c * table[column + 3u]; // modulo 2^32
        row.start += c * table[column + 4u];
        let inside = !filled || (c >= table[column + 5u] && c < table[column + 6u]);
        row.high = select(row.low, row.high, inside);
    }
    return row;
}

override whole_words: bool = false; // whether all elements are whole words, so that no shift within a word is needed

@group(0) @binding(1) var<storage, read> source_blocks: array<vec4<u32>>;

@group(0) @binding(2) var<storage, read_write> target_blocks: array<vec4<u32>>;

// The 16 bytes at byte `offset`, 0 to 15, of two consecutive blocks.
fn join(low: vec4<u32>, high: vec4<u32>, offset: u32) -> vec4<u32> {
    let by_two = select(low, vec4(low.zw, high.xy), (offset & 8u) != 0u);
    let beyond = select(high.xy, high.zw, (offset & 8u) != 0u);
    let words = select(by_two, vec4(by_two.yzw, beyond.x), (offset & 4u) != 0u);
    if (whole_words) {
        return words;
    }
    let next = vec4(words.yzw, select(beyond.x, beyond.y, (offset & 4u) != 0u));
    let bits = vec4(offset % 4u * 8u);
    return select((words >> bits) | (next << ((32u - bits) % 32u)), words, bits == vec4(0u));
}

// A block of the source. 32-bit byte offsets address 2^28 blocks: numbers of blocks before the binding are taken modulo
// 2^28, so that the next block after the last is block 0.
fn source_block(number: u32) -> vec4<u32> {
    return source_blocks[number & 0x0fffffffu]; // may be beyond the binding
}

// The n-th block after the block that contains byte `source`.
fn block_after(source: u32, n: u32) -> vec4<u32> {
    return source_block(source / 16u + n);
}

// A mask of the bytes before `stop`, 0 to 16, of a block.
fn below(stop: u32) -> vec4<u32> {
    let first = vec4(0u, 4u, 8u, 12u); // bytes before each word
    let count = min(max(vec4(stop), first) - first, vec4(4u));
    return select((vec4(1u) << (8u * (count % 4u))) - 1u, vec4(0xffffffffu), count == vec4(4u));
}

// A mask of the bytes from `start` to before `stop`, 0 to 16, of a block.
fn mask(start: u32, stop: u32) -> vec4<u32> {
    return below(stop) & ~below(start);
}

// A mask of the bytes of a block from `start` on, a byte inside, before or after the block.
fn mask_from(start: u32, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return mask(clamp(start, base, base + 16u) - base, 16u);
}
