// indexed: the parameters of one dispatch that gathers or scatters, the indices that it reads, and its elements.

//   element c, an index of `sizes`  ->  source_offset + dot(c, source_strides), target_offset + dot(c, target_strides)
//   table t                         ->  index i: entry table_offsets[t] + dot(c, table_strides[t]) of the index array
//
// Each table adds i * steps[t] elements to the offset on the indexed side: the source of a gather, the target of a
// scatter. A negative index counts once from the end of its dimension. True elements of a mask are in range.
struct Indexed {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    multipliers: array<vec4<u32>, 2>,    // of the divisors `sizes`
    shifts: array<vec4<u32>, 2>,         // bits, for the same divisors
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32
    target_strides: array<vec4<u32>, 2>, // elements, modulo 2^32
    winner_strides: array<vec4<u32>, 2>, // winners, where an element may be written twice
    number_strides: array<vec4<u32>, 2>, // index numbers, where an element may be written twice
    table_strides: array<vec4<u32>, 8>,  // indices; dimension d of table t is table_strides[2 * t + d / 4][d % 4]
    table_offsets: vec4<u32>,            // indices, from the start of the binding
    extents: vec4<u32>,                  // size of the dimension that a table indexes
    wraps: vec4<u32>,                    // added to negative indices: the extent, or 0 where they are out of range
    steps: vec4<u32>,                    // elements per increment of the index, modulo 2^32
    winner_steps: vec4<u32>,             // winners per increment of the index
    source_offset: u32,                  // elements, from the start of the binding, modulo 2^32
    target_offset: u32,                  // elements, from the start of the binding, modulo 2^32
    rank: u32,                           // dimensions in use, at least one
    count: u32,                          // rows: indices of all dimensions but the last
    pieces: u32,                         // invocations per row
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, for the same divisor
    rows_multiplier: u32,                // of the divisor `count`
    rows_shift: u32,                     // bits, for the same divisor
    elements: u32,                       // of all rows
    each: u32,                           // words per invocation
    unused: u32,                         // padding to 16 bytes
}

override tables: u32 = 1u;           // of indices, at most four
override index_bytes: u32 = 4u;      // bytes per index: 1, 2, 4 or 8
override index_signed: bool = false; // whether indices may be negative
override by_rows: bool = false;      // whether an index is the same for all elements of a row
override masked: bool = false;       // whether the table is a mask, whose true elements add no offset

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(3) var<storage, read> index_words: array<u32>;

fn source_step_of(d: u32) -> u32 { return copy.source_strides[d / 4u][d % 4u]; }
fn target_step_of(d: u32) -> u32 { return copy.target_strides[d / 4u][d % 4u]; }
fn winner_step_of(d: u32) -> u32 { return copy.winner_strides[d / 4u][d % 4u]; }
fn number_step_of(d: u32) -> u32 { return copy.number_strides[d / 4u][d % 4u]; }
fn table_step_of(t: u32, d: u32) -> u32 { return copy.table_strides[2u * t + d / 4u][d % 4u]; }

struct Index {
    value: u32,   // non-negative, clamped to the range
    inside: bool, // whether it was in range
}

// Reads entry `number` of the index array as an index into the dimension of table t.
fn find_in_table(t: u32, number: u32) -> Index {
    let words = max(index_bytes / 4u, 1u);
    let per_word = max(4u / index_bytes, 1u);
    let bits = 8u * min(index_bytes, 4u);
    var low = index_words[number / per_word * words];
    if (bits < 32u) {
        let shift = number % per_word * bits;
        let value = bitcast<u32>(extractBits(bitcast<i32>(low), shift, bits));
        low = select(extractBits(low, shift, bits), value, index_signed);
    }
    if (masked) {
        return Index(0u, low != 0u);
    }
    var high = select(0u, 0xffffffffu, index_signed && low >= 0x80000000u); // of 64 bits
    if (words == 2u) {
        high = index_words[number * 2u + 1u];
    }
    let negative = index_signed && high >= 0x80000000u;
    let value = low + select(0u, copy.wraps[t], negative);
    let inside = high == select(0u, 0xffffffffu, negative) && value < select(copy.extents[t], copy.wraps[t], negative);
    return Index(select(select(copy.extents[t] - 1u, 0u, negative), value, inside), inside);
}

// The first element of a row.
struct IndexedRow {
    source_element: u32, // elements, without the tables' offsets, modulo 2^32
    target_element: u32, // elements, without the tables' offsets, modulo 2^32
    winner: u32,         // winners, without the tables' offsets
    number: u32,         // number of its index
    numbers: vec4<u32>,  // entry of the index array, for each table
}

fn find_indexed_row(number: u32) -> IndexedRow {
    var row = IndexedRow(copy.source_offset, copy.target_offset, 0u, 0u, copy.table_offsets);
    var rest = number;
    for (var d = copy.rank - 1u; d > 0u; d--) {
        var c = rest;
        if (d > 1u) {
            rest = divide_by(rest, d - 1u);
            c -= rest * size_of(d - 1u);
        }
        row.source_element += c * source_step_of(d - 1u);
        row.target_element += c * target_step_of(d - 1u);
        row.winner += c * winner_step_of(d - 1u);
        row.number += c * number_step_of(d - 1u);
        for (var t = 0u; t < tables; t++) {
            row.numbers[t] += c * table_step_of(t, d - 1u);
        }
    }
    return row;
}

// The tables' offsets for the c-th element of a row.
struct Reached {
    elements: u32, // offset on the indexed side, modulo 2^32
    places: u32,   // offset in winners
    inside: bool,  // whether all indices were in range
}

fn find_reached(row: IndexedRow, c: u32) -> Reached {
    var reached = Reached(0u, 0u, true);
    for (var t = 0u; t < tables; t++) {
        let index = find_in_table(t, row.numbers[t] + c * table_step_of(t, copy.rank - 1u));
        reached.elements += index.value * copy.steps[t];
        reached.places += index.value * copy.winner_steps[t];
        reached.inside = reached.inside && index.inside;
    }
    return reached;
}

override down: bool = false;      // whether consecutive invocations take consecutive rows; needs contiguous pieces
override contested: bool = false; // whether two indices may name one element

@group(0) @binding(4) var<storage, read> winners: array<u32>; // for each element, 1 + number of its last index

// The elements of a row that an invocation copies.
//
//   invocation n  ->  piece n % pieces of row n / pieces, or with `down` piece n / rows of row n % rows
//   piece         ->  `each` elements of the row, blocked or striped (see Piece)
//
// A row is the last dimension, of at least `each` elements where pieces are contiguous.
struct IndexedPiece {
    row: IndexedRow, // that contains it
    first: u32,      // first element, from the start of the row
    of_row: Reached, // the tables' offsets for the row's first element
    left_over: bool, // whether it is empty
}

fn find_indexed_piece(invocation: u32) -> IndexedPiece {
    var piece = find_piece(invocation, copy.count);
    if (down) {
        let number = divide(invocation, copy.rows_multiplier, copy.rows_shift);
        piece = Piece(invocation - number * copy.count, min(number, copy.pieces - 1u));
    }
    let row = find_indexed_row(piece.row);
    let first = first_unit(piece, 0u, size_of(copy.rank - 1u));
    return IndexedPiece(row, first, find_reached(row, 0u), is_left_over(piece, copy.count));
}

struct IndexedElement {
    source_element: u32, // elements, without the tables' offsets, modulo 2^32
    target_element: u32, // elements, without the tables' offsets, modulo 2^32
    winner: u32,         // position in `winners`
    number: u32,         // number of its index
    further: u32,        // the tables' offset in elements, modulo 2^32
    inside: bool,        // whether all indices were in range
    is_one: bool,        // whether the element exists
}

// The k-th element of a piece.
fn find_indexed_element(piece: IndexedPiece, k: u32) -> IndexedElement {
    let last = copy.rank - 1u;
    let c = piece.first + k * unit_step();
    var reached = piece.of_row;
    if (!by_rows) {
        reached = find_reached(piece.row, c);
    }
    return IndexedElement(piece.row.source_element + c * source_step_of(last),
                          piece.row.target_element + c * target_step_of(last),
                          piece.row.winner + c * winner_step_of(last) + reached.places,
                          piece.row.number + c * number_step_of(last),
                          reached.elements,
                          reached.inside,
                          contiguous || (!piece.left_over && c < size_of(last)));
}

// Whether a scatter writes an element: its index must be in range, and no later index may name the same target.
fn is_written(element: IndexedElement) -> bool {
    if (contested && element.inside) {
        return element.is_one && winners[element.winner] == element.number + 1u;
    }
    return element.is_one && element.inside;
}
