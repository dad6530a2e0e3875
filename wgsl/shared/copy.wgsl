// copy: the parameters of one dispatch that copies one layout into another, and where its rows and tiles begin.

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // elements, rows, words or tiles: what the kernel's first comment maps
    multipliers: array<vec4<u32>, 2>,    // of each dimension's divisor, for kernels that must not divide
    shifts: array<vec4<u32>, 2>,         // bits, for the same divisors
    pieces: u32,                         // invocations a row, or tiles beside each other in a plane
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, for the same divisor
    row_tiles: u32,                      // tiles below each other in a plane
    row_tiles_multiplier: u32,           // of the divisor `row_tiles`
    row_tiles_shift: u32,                // bits, for the same divisor
    across_shift: u32,                   // 2^across_shift invocations lie beside each other along a tile's columns
    ahead_columns: u32,                  // columns from one unit of an invocation to its next
    ahead_rows: u32,                     // rows from one unit of an invocation to its next
    element_bytes: u32,                  // bytes an element, for kernels that are not compiled for some
    paired: u32,                         // 1 where a row is the last two dimensions, 0 where it is the last one
    unused: u32,                         // fills the last 16 bytes
}

@group(0) @binding(0) var<uniform> copy: Copy;

fn source_stride_of(d: u32) -> u32 { return copy.source_strides[d / 4u][d % 4u]; }
fn target_stride_of(d: u32) -> u32 { return copy.target_strides[d / 4u][d % 4u]; }

struct Place {
    source_element: u32, // elements, from the start of the binding
    target_element: u32, // elements, from the start of the binding
}

// The place of a row-major index over the first dimensions, at 0 in all others.
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

// The tile that a number names: tiles go along the columns first, then down the rows, then from plane to plane.
struct TileNumber {
    column: u32, // tiles before it along the columns
    row: u32,    // tiles before it down the rows
    plane: u32,  // planes before its own
}

fn find_tile_number(number: u32) -> TileNumber {
    let rows = divide(number, copy.pieces_multiplier, copy.pieces_shift);
    let planes = divide(rows, copy.row_tiles_multiplier, copy.row_tiles_shift);
    return TileNumber(number - rows * copy.pieces, rows - planes * copy.row_tiles, planes);
}
