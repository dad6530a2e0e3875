// word_grid: unit_grid in units of u32.

alias Unit = u32;
const units: u32 = 8u;

// unit_grid: copies elements of 4, 8 or 16 bytes at any stride, on GPUs: kernels word_grid, pair_grid and wide_grid.
//
//   workgroup g, invocation i  ->  `units` units of tile g of a plane (see Tile), all loaded before the first store
//
// A unit is one element. Each kernel's module begins with its type, `alias Unit = u32;`, vec2<u32> or vec4<u32>, and
// the units per invocation, `const units: u32 = 8u;`.

@group(0) @binding(1) var<storage, read> source_units: array<Unit>;
@group(0) @binding(2) var<storage, read_write> target_units: array<Unit>;

@compute @workgroup_size(workgroup_size)
fn unit_grid(own: Invocation) {
    let group = group_number(own.group, own.groups);
    if (group >= copy.count) {
        return;
    }
    let last = copy.rank - 1u;
    let before = copy.rank - 2u;
    let columns = size_of(last);
    let rows = size_of(before);
    let source_column = source_stride_of(last);
    let source_row = source_stride_of(before);
    let target_column = target_stride_of(last);
    let target_row = target_stride_of(before);
    let tile = find_tile(group);
    let column = own_column(own.index);
    let row = own_row(own.index);
    let source_first = tile.place.source_element + tile.column * source_column + tile.row * source_row;
    let target_first = tile.place.target_element + tile.column * target_column + tile.row * target_row;
    let source_unit = source_first + (column * source_column + row * source_row);
    let target_unit = target_first + (column * target_column + row * target_row);
    let source_ahead = copy.ahead_columns * source_column + copy.ahead_rows * source_row;
    let target_ahead = copy.ahead_columns * target_column + copy.ahead_rows * target_row;
    var held: array<Unit, units>;
    for (var k = 0u; k < units; k++) {
        // Units outside of the plane, which may be beyond the binding, are not stored.
        held[k] = source_units[source_unit + k * source_ahead];
    }
    for (var k = 0u; k < units; k++) {
        let inside = tile.column + column + k * copy.ahead_columns < columns;
        if (inside && tile.row + row + k * copy.ahead_rows < rows) {
            target_units[target_unit + k * target_ahead] = held[k];
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

// The tile of a workgroup, of which each invocation copies several units.
//
//   workgroup g   ->  tile g of a plane of the last two dimensions: the last is columns, the one before it rows
//   invocation i  ->  unit k < units: column i % 2^across_shift + k * ahead_columns,
//                     row i / 2^across_shift + k * ahead_rows of the tile
//
// Divisions are uniform across a workgroup, and consecutive invocations access consecutive units.
struct Tile {
    place: Place, // of the plane's first unit
    column: u32,  // first column
    row: u32,     // first row
}

fn tile_columns() -> u32 {
    return max(copy.ahead_columns * units, 1u << copy.across_shift);
}

fn tile_rows() -> u32 {
    return max(copy.ahead_rows * units, workgroup_size >> copy.across_shift);
}

fn find_tile(group: u32) -> Tile {
    let number = find_tile_number(group);
    let column = number.column * tile_columns();
    let row = number.row * tile_rows();
    return Tile(find_place(number.plane, copy.rank - 2u), column, row);
}

// Columns and rows from the first unit of a tile to the first unit of an invocation.
fn own_column(index: u32) -> u32 {
    return index & ((1u << copy.across_shift) - 1u);
}

fn own_row(index: u32) -> u32 {
    return index >> copy.across_shift;
}
