// subword_ends: word by word, the blocks of 16 bytes at the heads and tails of unaligned rows that pixels copies.
//
//   invocation n  ->  piece n % 8 of row n / 8: 0 to 3 are words of the block with the row's head, 4 to 7 with its tail
//
// A row is the last two dimensions. Needs target strides in descending order, each larger than the extent of all
// dimensions after it, the last one 1, and no gaps inside a row.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn subword_ends(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let row = find_runs();
    let place = find_place(piece.row, row.dimensions);
    let per_word = elements_per_word();
    let extent = find_extent(place.target_element, row.size, 4u * per_word);
    let is_head = piece.number < 4u;
    let word = 4u * select(extent.stop_unit, extent.first_unit, is_head) + piece.number % 4u;
    // The end of the previous row, modulo 2^32 of the first one.
    let before = find_place(piece.row - 1u, row.dimensions).target_element + row.size;
    let taken = piece.row > 0u && before > word * per_word;
    let whole = is_head && extent.first_unit == extent.whole_unit;
    let again = !is_head && extent.stop_unit < extent.whole_unit; // head and tail of a row inside one block
    let inside = word * per_word < extent.stop && (word + 1u) * per_word > extent.start;
    if (inside && !taken && !whole && !again) {
        copy_edge_word(word, piece, extent, place, row);
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

// The target range of a row, in elements or bytes as the kernel defines, and the units that it covers.
struct Extent {
    start: u32,      // elements or bytes
    stop: u32,       // elements or bytes, exclusive
    first_unit: u32, // the unit that contains `start`
    whole_unit: u32, // the first unit that is wholly inside the row
    stop_unit: u32,  // one past the last unit that is wholly inside the row
}

fn find_extent(start: u32, size: u32, places_per_unit: u32) -> Extent {
    let stop = start + size;
    let whole_unit = (start + places_per_unit - 1u) / places_per_unit;
    return Extent(start, stop, start / places_per_unit, whole_unit, stop / places_per_unit);
}

override contiguous: bool = false; // blocked, not striped

// The units of a row that an invocation copies: elements, words or blocks of 16 bytes, as the kernel says.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece p, contiguous  ->  units p * each to (p + 1) * each of the row (blocked)
//   piece p, striped     ->  units p, p + pieces, ..., at most `each`: consecutive invocations access consecutive units
//
// Contiguous pieces are for CPU adapters, whose invocations run in SIMD lanes and pay for each masked access: all
// accesses are unconditional.
// Repeats where `contiguous`: the last piece of a row is moved back until it is full, surplus invocations take it again
struct Piece {
    row: u32,    // row index
    number: u32, // piece index within the row
}

fn find_piece(invocation: u32, rows: u32) -> Piece {
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    let taken = select(row, min(row, rows - 1u), contiguous);
    return Piece(taken, min(invocation - taken * copy.pieces, copy.pieces - 1u));
}

// Whether an invocation is surplus; never where pieces are contiguous.
fn is_left_over(piece: Piece, rows: u32) -> bool {
    return !contiguous && piece.row >= rows;
}

struct Copy {
    dimensions: array<Dimension, 8>, // the first `rank` of them are in use
    source_offset: u32,              // elements, from the start of the binding
    target_offset: u32,              // elements, from the start of the binding
    rank: u32,                       // dimensions in use
    count: u32,                      // elements, rows, words or tiles, as the kernel's header maps them
    pieces: u32,                     // invocations per row, or tiles per tile row of a plane
    pieces_multiplier: u32,          // of the divisor `pieces`
    pieces_shift: u32,               // bits, for the same divisor
    row_tiles: u32,                  // tile rows per plane
    row_tiles_multiplier: u32,       // of the divisor `row_tiles`
    row_tiles_shift: u32,            // bits, for the same divisor
    across_shift: u32,               // 2^across_shift consecutive invocations span the columns of a tile
    ahead_columns: u32,              // columns between consecutive units of an invocation
    ahead_rows: u32,                 // rows between consecutive units of an invocation
    element_bytes: u32,              // bytes per element, for kernels without an element_bytes override
    paired: u32,                     // 1 where a row is the last two dimensions, 0 where it is the last one
    unused: u32,                     // padding to 16 bytes
}

struct Dimension {
    size: u32,          // elements
    source_stride: u32, // elements, modulo 2^32: a negative stride wraps around
    target_stride: u32, // elements
    multiplier: u32,    // of its divisor, for kernels that must not divide
    shift: u32,         // bits, for the same divisor
    unused_0: u32,      // padding to 16 bytes
    unused_1: u32,      // padding to 16 bytes
    unused_2: u32,      // padding to 16 bytes
}

@group(0) @binding(0) var<uniform> copy: Copy;

fn source_stride_of(d: u32) -> u32 { return copy.dimensions[d].source_stride; }

fn target_stride_of(d: u32) -> u32 { return copy.dimensions[d].target_stride; }

struct Place {
    source_element: u32, // elements, from the start of the binding
    target_element: u32, // elements, from the start of the binding
}

// The offsets of a row-major index over the first `dimensions` dimensions, index 0 in all others.
fn find_place(index: u32, dimensions: u32) -> Place {
    var place = Place(copy.source_offset, copy.target_offset);
    var rest = index;
    for (var d = dimensions; d > 0u; d--) {
        var c = rest;
        if (d > 1u) {
            rest = divide_by(rest, d - 1u);
            c -= rest * size_of(d - 1u);
        }
        place.source_element += c * source_stride_of(d - 1u);
        place.target_element += c * target_stride_of(d - 1u);
    }
    return place;
}

// A row: one run of the last dimension, or a run for each index of the dimension before it.
struct Runs {
    dimensions: u32,    // outside of a row
    run: u32,           // elements per run
    size: u32,          // elements per row
    source_stride: u32, // elements between those of a run, modulo 2^32
    target_stride: u32, // elements between those of a run
    source_carry: u32,  // additional elements from one run to the next, modulo 2^32; 0 for one run
    target_carry: u32,  // additional elements from one run to the next; 0 for one run
}

fn find_runs() -> Runs {
    let last = copy.rank - 1u;
    let before = last - copy.paired; // the outer dimension of a pair
    let run = size_of(last);
    let size = run * select(1u, size_of(before), copy.paired == 1u);
    let source_stride = source_stride_of(last);
    let target_stride = target_stride_of(last);
    let source_carry = source_stride_of(before) - run * source_stride;
    let target_carry = target_stride_of(before) - run * target_stride; // modulo 2^32 for one run, then unused
    return Runs(before, run, size, source_stride, target_stride,
                copy.paired * source_carry, copy.paired * target_carry);
}

// The runs that end before the c-th element of a row.
fn runs_before(c: u32) -> u32 {
    let last = copy.rank - 1u;
    return copy.paired * divide_by(c, last);
}

// The source elements from the first element of a row to the c-th.
fn source_ahead(row: Runs, c: u32) -> u32 {
    return c * row.source_stride + runs_before(c) * row.source_carry;
}

// Writes a word at the head or tail of a row and the next row's elements in that word; other bytes keep their value.
fn copy_edge_word(word: u32, piece: Piece, extent: Extent, place: Place, row: Runs) {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    let next = find_place(piece.row + 1u, row.dimensions);
    var value = target_words[word];
    for (var i = 0u; i < per_word; i++) {
        let element = word * per_word + i;
        let inside = element >= extent.start && element < extent.stop;
        let follows = piece.row + 1u < copy.count && element >= next.target_element;
        if (inside || follows) {
            let start = select(place.source_element, next.source_element, follows);
            let c = element - select(extent.start, next.target_element, follows);
            value = insertBits(value, read_subword(start + source_ahead(row, c)), i * bits, bits);
        }
    }
    target_words[word] = value;
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
