// copy: the parameters of one dispatch that copies one layout to another, and the offsets of its rows, runs and tiles.

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

// The first unit that an invocation copies of a tile.
//
//   workgroup g   ->  tile g of a plane of the last two dimensions: the last is columns, the one before it rows
//   invocation i  ->  unit k < units: column i % 2^across_shift + k * ahead_columns,
//                     row i / 2^across_shift + k * ahead_rows of the tile
//
// Divisions are uniform across a workgroup, and consecutive invocations access consecutive units.
struct TileUnit {
    plane: Place, // of the plane's first unit
    column: u32,  // in the plane
    row: u32,     // in the plane
}

fn find_tile_unit(group: u32, index: u32) -> TileUnit {
    let number = find_tile_number(group);
    let across = 1u << copy.across_shift;
    let columns = max(copy.ahead_columns * units, across); // of a tile
    let rows = max(copy.ahead_rows * units, workgroup_size >> copy.across_shift); // of a tile
    return TileUnit(find_place(number.plane, copy.rank - 2u),
                    number.column * columns + (index & (across - 1u)),
                    number.row * rows + (index >> copy.across_shift));
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

fn find_runs(paired: bool) -> Runs {
    let last = copy.rank - 1u;
    let before = last - u32(paired); // the outer dimension of a pair
    let run = size_of(last);
    let size = run * select(1u, size_of(before), paired);
    let source_stride = source_stride_of(last);
    let target_stride = target_stride_of(last);
    let source_carry = source_stride_of(before) - run * source_stride;
    let target_carry = target_stride_of(before) - run * target_stride; // modulo 2^32 for one run, then unused
    return Runs(before, run, size, source_stride, target_stride,
                select(0u, source_carry, paired), select(0u, target_carry, paired));
}

// The runs that end before the c-th element of a row.
fn runs_before(c: u32, paired: bool) -> u32 {
    let last = copy.rank - 1u;
    return select(0u, divide_by(c, last), paired);
}

// The source elements from the first element of a row to the c-th.
fn source_ahead(row: Runs, c: u32) -> u32 {
    return c * row.source_stride + runs_before(c, copy.paired == 1u) * row.source_carry;
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
