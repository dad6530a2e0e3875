// indexed: the parameters of one dispatch that gathers or scatters, the indices that it reads, and its elements.

//   element c, an index of the sizes  ->  source_offset + dot(c, source strides), target_offset + dot(c, target strides)
//   table t                           ->  index i: entry table_offsets[t] + dot(c, table_strides[t] of the dimensions)
//
// Each table adds i * steps[t] elements to the offset on the indexed side: the source of a gather, the target of a
// scatter. A negative index counts once from the end of its dimension. True elements of a mask are in range.
struct Indexed {
    dimensions: array<IndexedDimension, 8>, // the first `rank` of them are in use
    table_offsets: vec4<u32>,               // indices, from the start of the binding
    bounds: IndexedBounds,                  // of all tables
    source_offset: u32,                     // elements, from the start of the binding, modulo 2^32
    target_offset: u32,                     // elements, from the start of the binding, modulo 2^32
    rank: u32,                              // dimensions in use, at least one
    count: u32,                             // rows: indices of all dimensions but the last
    elements: u32,                          // of all rows
    each: u32,                              // words per invocation
    pieces: u32,                            // invocations per row
    pieces_multiplier: u32,                 // of the divisor `pieces`
    pieces_shift: u32,                      // bits, for the same divisor
    rows: u32,                              // rows of a group, with `down`
    rows_multiplier: u32,                   // of the divisor `rows`
    rows_shift: u32,                        // bits, for the same divisor
}

// What kernels know of each table, and load once: loops would load uniforms again in each iteration, which CPU adapters
// pay for.
struct IndexedBounds {
    extents: vec4<u32>,      // size of the dimension that a table indexes
    wraps: vec4<u32>,        // added to negative indices: the extent, or 0 where they are out of range
    steps: vec4<u32>,        // elements per increment of the index, modulo 2^32
    winner_steps: vec4<u32>, // winners per increment of the index
    firsts: vec4<u32>,       // with `ranged`, the first index that the dispatch copies
    stops: vec4<u32>,        // with `ranged`, one past the last index that the dispatch copies
}

// One by one: SwiftShader takes a tenth longer for gathers that load the struct as a whole.
fn find_indexed_bounds() -> IndexedBounds {
    return IndexedBounds(copy.bounds.extents, copy.bounds.wraps, copy.bounds.steps,
                         copy.bounds.winner_steps, copy.bounds.firsts, copy.bounds.stops);
}

struct IndexedDimension {
    size: u32,                // elements
    multiplier: u32,          // of the divisor `size`
    shift: u32,               // bits, for the same divisor
    source_stride: u32,       // elements, modulo 2^32
    target_stride: u32,       // elements, modulo 2^32
    winner_stride: u32,       // winners, where an element may be written twice
    number_stride: u32,       // index numbers, where an element may be written twice
    unused: u32,              // padding to 16 bytes
    table_strides: vec4<u32>, // entries of the index array of each table
}

override tables: u32 = 1u;           // of indices, at most four
override index_bytes: u32 = 4u;      // bytes per index: 1, 2, 4 or 8
override index_signed: bool = false; // whether indices may be negative
override by_rows: bool = false;      // whether an index is the same for all elements of a row
override masked: bool = false;       // whether the table is a mask, whose true elements add no offset
override ranged: bool = false;       // whether the dispatch copies a range of each table's indices, and skips others

// The words of an index that are loaded at once: both of an index of 8 bytes, for which modules declare vec2<u32>.
alias IndexUnit = u32;

@group(0) @binding(3) var<storage, read> index_units: array<IndexUnit>;

struct Index {
    value: u32,   // non-negative, clamped to the range
    inside: bool, // whether it was in range
}

// Reads entry `number` of the index array as an index into a dimension of `extent` elements.
fn find_in_table(number: u32, extent: u32, wrap: u32) -> Index {
    let words = vec2<u32>(index_units[number / max(4u / index_bytes, 1u)]); // the same word twice if a unit is one
    let low = extended(words.x, number, index_bytes, index_signed);
    if (masked) { return Index(0u, low != 0u); }
    var high = select(0u, 0xffffffffu, index_signed && low >= 0x80000000u); // of 64 bits
    if (index_bytes == 8u) { high = words.y; }
    let negative = index_signed && high >= 0x80000000u;
    let value = low + select(0u, wrap, negative); // modulo 2^32
    let inside = high == select(0u, 0xffffffffu, negative) && value < select(extent, wrap, negative);
    return Index(select(select(extent - 1u, 0u, negative), value, inside), inside);
}

// The position of an element of a row, or the distance between two.
struct IndexedPosition {
    source_element: u32, // elements, without the tables' offsets, modulo 2^32
    target_element: u32, // elements, without the tables' offsets, modulo 2^32
    winner: u32,         // winners, without the tables' offsets
    number: u32,         // number of its index
    entries: vec4<u32>,  // of the index array, for each table
}

// The position that is `distance` elements further along dimension d.
fn moved(from_position: IndexedPosition, d: u32, distance: u32) -> IndexedPosition {
    var position = from_position;
    position.source_element += distance * copy.dimensions[d].source_stride;
    position.target_element += distance * copy.dimensions[d].target_stride;
    position.winner += distance * copy.dimensions[d].winner_stride;
    position.number += distance * copy.dimensions[d].number_stride;
    position.entries += distance * copy.dimensions[d].table_strides;
    return position;
}

// The position of a row's first element.
fn find_indexed_row(number: u32) -> IndexedPosition {
    var row = IndexedPosition(copy.source_offset, copy.target_offset, 0u, 0u, copy.table_offsets);
    var rest = number;
    for (var d = copy.rank - 1u; d > 0u; d--) {
        var c = rest;
        if (d > 1u) {
            rest = divide_by(rest, d - 1u);
            c -= rest * size_of(d - 1u);
        }
        row = moved(row, d - 1u, c);
    }
    return row;
}

// The tables' offsets for an element. Of an index outside of a dispatch's range they are those of the nearest one, so
// that they stay inside of the bindings.
struct Reached {
    elements: u32, // offset on the indexed side, modulo 2^32
    places: u32,   // offset in winners
    copied: bool,  // whether all indices, clamped, are in the ranges that the dispatch copies
    inside: bool,  // whether they are, and none had to be clamped
}

fn find_reached(entries: vec4<u32>, bounds: IndexedBounds) -> Reached {
    var reached = Reached(0u, 0u, true, true);
    for (var t = 0u; t < tables; t++) {
        let index = find_in_table(entries[t], bounds.extents[t], bounds.wraps[t]);
        var value = index.value;
        var place = index.value;
        if (ranged) {
            value = clamp(value, bounds.firsts[t], bounds.stops[t] - 1u);
            place = value - bounds.firsts[t];
            reached.copied = reached.copied && value == index.value;
        }
        reached.elements += value * bounds.steps[t];
        reached.places += place * bounds.winner_steps[t];
        reached.inside = reached.inside && reached.copied && index.inside;
    }
    return reached;
}

override down: bool = false;      // whether consecutive invocations take consecutive rows; needs contiguous pieces

// The elements of a row that an invocation copies.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   with `down`   ->  piece n / rows % pieces of row n % rows of group n / rows / pieces, of `rows` rows
//   piece         ->  `each` elements of the row, blocked or striped (see Piece)
//
// A row is the last dimension, of at least `each` elements where pieces are contiguous.
struct IndexedPiece {
    first: IndexedPosition, // position of the first element
    number: u32,            // its number, from the start of the row
    step: IndexedPosition,  // distance to the element after it
    bounds: IndexedBounds,  // of all tables
    of_row: Reached,        // the tables' offsets for the row's first element
    left_over: bool,        // whether it is empty
}

fn find_indexed_piece(invocation: u32) -> IndexedPiece {
    var piece = find_piece(invocation, copy.count);
    if (down) {
        let turn = divide(invocation, copy.rows_multiplier, copy.rows_shift);
        let group = divide(turn, copy.pieces_multiplier, copy.pieces_shift);
        let row = min(invocation - (turn - group) * copy.rows, copy.count - 1u);
        piece = Piece(row, turn - group * copy.pieces, false);
    }
    let last = copy.rank - 1u;
    let number = first_unit(piece, 0u, size_of(last));
    let first = moved(find_indexed_row(piece.row), last, number);
    let step = moved(IndexedPosition(), last, unit_step());
    let bounds = find_indexed_bounds();
    let of_row = find_reached(first.entries, bounds); // where left over beyond the binding
    return IndexedPiece(first, number, step, bounds, of_row, piece.left_over);
}

// Whether a piece has a k-th element.
fn is_one(piece: IndexedPiece, k: u32) -> bool {
    return contiguous || (!piece.left_over && piece.number + k * unit_step() < size_of(copy.rank - 1u));
}

// The tables' offsets for an element of a piece at a position.
fn find_offsets(piece: IndexedPiece, element: IndexedPosition) -> Reached {
    if (by_rows) { return piece.of_row; }
    return find_reached(element.entries, piece.bounds); // behind the last element beyond the binding
}

// The position of the element after another one of a piece.
fn after(element: IndexedPosition, step: IndexedPosition) -> IndexedPosition {
    return IndexedPosition(element.source_element + step.source_element,
                           element.target_element + step.target_element,
                           element.winner + step.winner,
                           element.number + step.number,
                           element.entries + step.entries);
}

// Whether a scatter writes an element: its index must be in range, and no later index may name the same target.
fn is_written(element: IndexedPosition, reached: Reached) -> bool {
    if (contested && reached.inside) {
        return winners[element.winner + reached.places] == element.number + 1u;
    }
    return reached.inside;
}
