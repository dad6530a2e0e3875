// copy: the parameters of one dispatch that copies one layout to another, and the offsets of its rows and tiles.

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // elements, rows, words or tiles, as the kernel's header maps them
    multipliers: array<vec4<u32>, 2>,    // of each dimension's divisor, for kernels that must not divide
    shifts: array<vec4<u32>, 2>,         // bits, for the same divisors
    pieces: u32,                         // invocations per row, or tiles per tile row of a plane
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, for the same divisor
    row_tiles: u32,                      // tile rows per plane
    row_tiles_multiplier: u32,           // of the divisor `row_tiles`
    row_tiles_shift: u32,                // bits, for the same divisor
    across_shift: u32,                   // 2^across_shift consecutive invocations span the columns of a tile
    ahead_columns: u32,                  // columns between consecutive units of an invocation
    ahead_rows: u32,                     // rows between consecutive units of an invocation
    element_bytes: u32,                  // bytes per element, for kernels without an element_bytes override
    paired: u32,                         // 1 where a row is the last two dimensions, 0 where it is the last one
    unused: u32,                         // padding to 16 bytes
}

@group(0) @binding(0) var<uniform> copy: Copy;

fn source_stride_of(d: u32) -> u32 { return copy.source_strides[d / 4u][d % 4u]; }
fn target_stride_of(d: u32) -> u32 { return copy.target_strides[d / 4u][d % 4u]; }

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

// Decomposes a tile number: along the columns first, then down the rows, then from plane to plane.
struct TileNumber {
    column: u32, // tile index along the columns
    row: u32,    // tile index down the rows
    plane: u32,  // plane index
}

fn find_tile_number(number: u32) -> TileNumber {
    let rows = divide(number, copy.pieces_multiplier, copy.pieces_shift);
    let planes = divide(rows, copy.row_tiles_multiplier, copy.row_tiles_shift);
    return TileNumber(number - rows * copy.pieces, rows - planes * copy.row_tiles, planes);
}
