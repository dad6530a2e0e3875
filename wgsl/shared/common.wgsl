// common: for every kernel but slice1: invocation numbers, sizes of dimensions, divisions, and units of rows.

// Entry points pass its fields, not the struct: naga 29 provides num_workgroups on D3D12 in entry points only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,     // workgroup index, in each dimension of the grid
    @builtin(num_workgroups) groups: vec3<u32>,  // workgroups, in each dimension of the grid
    @builtin(local_invocation_index) index: u32, // index within the workgroup
}

override workgroup_size: u32 = 64u; // invocations
override contested: bool = false;   // whether two windows or indices may name one element

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

// Extends the integer of 1, 2 or 4 bytes that has a number in an array of them, and is in this word, to 32 bits.
fn extended(word: u32, number: u32, bytes: u32, is_signed: bool) -> u32 {
    let bits = 8u * min(bytes, 4u);
    if (bits == 32u) {
        return word;
    }
    let shift = number % max(4u / bytes, 1u) * bits;
    return select(extractBits(word, shift, bits), bitcast<u32>(extractBits(bitcast<i32>(word), shift, bits)), is_signed);
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

override each: u32 = 4u;           // units per invocation
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
    row: u32,        // row index
    number: u32,     // piece index within the row
    left_over: bool, // whether its invocation is surplus; never where pieces are contiguous
}

fn find_piece(invocation: u32, rows: u32) -> Piece {
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    let taken = select(row, min(row, rows - 1u), contiguous);
    return Piece(taken, min(invocation - taken * copy.pieces, copy.pieces - 1u), !contiguous && row >= rows);
}

// The first unit of a piece of a row with units from `start` to before `stop`.
fn first_unit(piece: Piece, start: u32, stop: u32) -> u32 {
    let contiguous_unit = min(piece.number * each, stop - start - each); // modulo 2^32 of a short row, then unused
    return start + select(piece.number, contiguous_unit, contiguous);
}

// Units between consecutive units of a piece.
fn unit_step() -> u32 {
    return select(copy.pieces, 1u, contiguous);
}

// The partial units at the head and tail of an unaligned row that a piece writes. The first of two rows that share a
// unit writes it; bytes outside the output keep their value.
struct Edges {
    first: u32, // the first of them; the second is the extent's stop_unit
    count: u32, // 0 to 2
}

// The first piece of a row writes the head, unless the previous row does (`taken`); the last piece writes the tail.
fn find_edges(piece: Piece, extent: Extent, places_per_unit: u32, taken: bool) -> Edges {
    let head = piece.number == 0u && extent.first_unit < extent.whole_unit && !taken;
    let tail = piece.number + 1u == copy.pieces && extent.stop_unit * places_per_unit < extent.stop;
    return Edges(select(extent.stop_unit, extent.first_unit, head), u32(head) + u32(tail));
}
