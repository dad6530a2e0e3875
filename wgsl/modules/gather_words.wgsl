// gather_words: gathers sub-word elements at indices, without atomics.
//
//   invocation n  ->  words n * each to (n + 1) * each of the target, counted from the word of its first element
//   element e     ->  element e of the copy, in row-major order, is element e of the packed target
//
// An invocation owns whole words and assembles them row by row. Bytes before the first element and after the last
// keep their value. Needs a packed target. Indices are clamped to their range.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn gather_words(own: Invocation) {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    let last = copy.rank - 1u;
    let start = copy.target_offset;
    let step = moved(IndexedPosition(), last, 1u);
    let bounds = find_indexed_bounds();
    let before = start % per_word; // elements of the first word before the output
    let first = invocation_number(own.group, own.groups, own.index) * copy.each * per_word;
    let stop = min(first + copy.each * per_word - before, copy.elements);
    var element = max(first, before) - before;
    while (element < stop) {
        let number = divide_by(element, last);
        let row = find_indexed_row(number);
        let c = element - number * size_of(last);
        let count = min(size_of(last) - c, stop - element); // elements of the row
        var reached = find_reached(row.entries + c * step.entries, bounds);
        for (var word = (start + element) / per_word; word * per_word < start + element + count; word++) {
            var value = target_words[word];
            for (var i = 0u; i < per_word; i++) {
                let ahead = word * per_word + i - start - element; // elements, modulo 2^32
                if (ahead < count) {
                    if (!by_rows) {
                        reached = find_reached(row.entries + (c + ahead) * step.entries, bounds);
                    }
                    let source = row.source_element + (c + ahead) * step.source_element + reached.elements;
                    let given = insertBits(value, read_subword(source), i * bits, bits);
                    value = select(value, given, reached.copied);
                }
            }
            target_words[word] = value;
        }
        element += count;
    }
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

fn size_of(d: u32) -> u32 { return copy.dimensions[d].size; }

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

// n divided by the divisor of dimension d.
fn divide_by(n: u32, d: u32) -> u32 {
    return divide(n, copy.dimensions[d].multiplier, copy.dimensions[d].shift);
}

//   element c, an index of the sizes  ->  source_offset + dot(c, source strides), target_offset + dot(c, target strides)
//   table t                           ->  index i: entry table_offsets[t] + dot(c, table_strides[t] of the dimensions)
//
// Each table adds i * steps[t] elements to the offset on the indexed side: the source of a gather, the target of a
// scatter. A negative index counts once from the end of its dimension. True elements of a mask are in range.
struct Indexed {
    dimensions: array<IndexedDimension, 8>, // the first `rank` of them are in use
    table_offsets: vec4<u32>,               // indices, from the start of the binding
    extents: vec4<u32>,                     // size of the dimension that a table indexes
    wraps: vec4<u32>,                       // added to negative indices: the extent, or 0 where they are out of range
    steps: vec4<u32>,                       // elements per increment of the index, modulo 2^32
    winner_steps: vec4<u32>,                // winners per increment of the index
    firsts: vec4<u32>,                      // with `ranged`, the first index that the dispatch copies
    stops: vec4<u32>,                       // with `ranged`, one past the last index that the dispatch copies
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

@group(0) @binding(0) var<uniform> copy: Indexed;

// The words of an index that are loaded at once: both of an index of 8 bytes, for which modules declare vec2<u32>.
alias IndexUnit = u32;

@group(0) @binding(3) var<storage, read> index_units: array<IndexUnit>;

struct Index {
    value: u32,   // non-negative, clamped to the range
    inside: bool, // whether it was in range
}

// Reads entry `number` of the index array as an index into a dimension of `extent` elements.
fn find_in_table(number: u32, extent: u32, wrap: u32) -> Index {
    let per_unit = max(4u / index_bytes, 1u);
    let bits = 8u * min(index_bytes, 4u);
    let words = vec2<u32>(index_units[number / per_unit]); // the same word twice if a unit is one
    var low = words.x;
    if (bits < 32u) {
        let shift = number % per_unit * bits;
        let value = bitcast<u32>(extractBits(bitcast<i32>(low), shift, bits));
        low = select(extractBits(low, shift, bits), value, index_signed);
    }
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

// The bounds of all tables: loops would load uniforms again in each iteration, which CPU adapters pay for.
struct IndexedBounds {
    extents: vec4<u32>,      // see Indexed
    wraps: vec4<u32>,        // see Indexed
    steps: vec4<u32>,        // see Indexed
    winner_steps: vec4<u32>, // see Indexed
    firsts: vec4<u32>,       // see Indexed
    stops: vec4<u32>,        // see Indexed
}

fn find_indexed_bounds() -> IndexedBounds {
    return IndexedBounds(copy.extents, copy.wraps, copy.steps, copy.winner_steps, copy.firsts, copy.stops);
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

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// Elements per word; at least 1, since compilers reject division by 0 even where it never runs.
fn elements_per_word() -> u32 {
    return max(4u / element_bytes, 1u);
}

fn read_subword(source_element: u32) -> u32 {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    return extractBits(source_words[source_element / per_word], source_element % per_word * bits, bits);
}
