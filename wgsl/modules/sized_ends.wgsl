// sized_ends: copies the words of windows of different sizes that are of a run in part: its first and its last one.
//
//   invocation n  ->  run n - f of the window with the greatest first piece f up to n
//
// Words are shared with other runs or with bytes outside all windows, so the target is atomic: an invocation writes
// only the bytes of its own run. sized_windows has written all other words before.

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

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// Atomic where several invocations write disjoint bits of one word; a kernel whose invocations own whole words declares
// its own.
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;

// Writes the bits of a word that are set in a mask. An XOR with the bits that differ sets them, whatever writers of
// other bits do meanwhile. If it returns other bits than were loaded, others write the same ones: then a
// compare-exchange sets them, and that of the last writer to succeed stays whole.
fn write_bits(word: u32, value: u32, mask: u32) {
    let loaded = atomicLoad(&target_words[word]);
    let change = (loaded ^ value) & mask;
    let found = atomicXor(&target_words[word], change);
    var old = found ^ change;
    var written = ((found ^ loaded) & mask) == 0u;
    while (!written) {
        let tried = atomicCompareExchangeWeak(&target_words[word], old, (old & ~mask) | (value & mask));
        old = tried.old_value;
        written = tried.exchanged;
    }
}

// A mask of the bytes before `stop` of a word.
fn below_byte(stop: u32) -> u32 {
    return select((1u << (stop * 8u % 32u)) - 1u, 0xffffffffu, stop >= 4u);
}
