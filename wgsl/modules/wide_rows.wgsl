// wide_rows: copies elements of 16 bytes by rows of the last dimension, with one load and one store per element.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` elements of the row, blocked or striped (see Piece)

@group(0) @binding(1) var<storage, read> source_vectors: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_vectors: array<vec4<u32>>;

@compute @workgroup_size(workgroup_size)
fn wide_rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let last = copy.rank - 1u;
    let size = size_of(last);
    let source_stride = source_stride_of(last);
    let target_stride = target_stride_of(last);
    let place = find_place(piece.row, last);
    let first = first_unit(piece, 0u, size);
    for (var k = 0u; k < each; k++) {
        let c = first + k * unit_step();
        if (contiguous || c < size) {
            let source_element = place.source_element + c * source_stride;
            let target_element = place.target_element + c * target_stride;
            target_vectors[target_element] = source_vectors[source_element];
        }
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

// The first unit of a piece of a row with units from `start` to before `stop`.
fn first_unit(piece: Piece, start: u32, stop: u32) -> u32 {
    let contiguous_unit = min(piece.number * each, stop - start - each); // modulo 2^32 of a short row, then unused
    return start + select(piece.number, contiguous_unit, contiguous);
}

// Units between consecutive units of a piece.
fn unit_step() -> u32 {
    return select(copy.pieces, 1u, contiguous);
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
