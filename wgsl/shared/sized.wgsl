// sized: the parameters of one dispatch that copies windows of different sizes, and the position of each row.

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
