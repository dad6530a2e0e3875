// wide_tiles: transposes elements of 1 to 16 bytes through workgroup memory, in vectors of 16 bytes on both sides. The
// target is contiguous along the last dimension (columns); the source along the one before it (rows), or strided by
// 2 or 4 elements.
//
//   workgroup g   ->  tile g of `side` x `side` source elements of these two dimensions, at one index of all others
//   invocation i  ->  loads vectors i, i + workgroup_size, ... of the tile, column by column; then stores cells i,
//                     i + workgroup_size, ...: a cell is one vector of columns by the elements of one word in rows
//
// Needs vectors aligned to 16 bytes on both sides, whole vectors in each target row, and numbers of vectors and cells
// that workgroup_size divides.
// Repeats: surplus workgroups write the last tile again

override element_bytes: u32 = 4u; // bytes per element: 1, 2, 4, 8 or 16
override side: u32 = 32u;         // elements per tile side
override row_step: u32 = 1u;      // source elements per row: 1, 2 or 4

@group(0) @binding(1) var<storage, read> source_vectors: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_vectors: array<vec4<u32>>;

// Vectors of a tile, column by column. Named, because naga 29 panics at an array size that is an expression.
override tile_vectors: u32 = side * side * element_bytes / 16u;

var<workgroup> tile: array<vec4<u32>, tile_vectors>;

fn elements_per_vector() -> u32 {
    return 16u / element_bytes;
}

fn vectors_per_side() -> u32 {
    return side * element_bytes / 16u;
}

// The position of a vector of a column in the tile, swizzled to avoid bank conflicts.
fn held_at(column: u32, vector: u32) -> u32 {
    return column * vectors_per_side() + (vector ^ (column / elements_per_vector()));
}

fn held_word(column: u32, word: u32) -> u32 {
    return tile[held_at(column, word / 4u)][word % 4u];
}

// Two words that a vector holds side by side. Not by `held_word`: in `(2 * pair + 1) % 4` Microsoft's FXC loses `pair`.
fn two_words(column: u32, pair: u32) -> vec2<u32> {
    let at = held_at(column, pair / 2u);
    let first = pair % 2u * 2u;
    return vec2(tile[at][first], tile[at][first + 1u]);
}

fn four_words(column: u32, word: u32) -> vec4<u32> {
    return vec4(held_word(column, word), held_word(column + 1u, word),
                held_word(column + 2u, word), held_word(column + 3u, word));
}

fn two_rows_of_halves(column: u32, word: u32) -> vec2<u32> {
    return turned_halves(held_word(column, word), held_word(column + 1u, word));
}

// Source elements spanned by the rows.
fn rows_spanned() -> u32 {
    let before = copy.rank - 2u;
    return (size_of(before) - 1u) * row_step + 1u;
}

struct Corner {
    target_element: u32, // of the cell's first element
    row: u32,            // source element within the column
}

fn write_row(corner: Corner, below: u32, vector: vec4<u32>) {
    let before = copy.rank - 2u;
    if (corner.row + below < rows_spanned() && corner.row % row_step == 0u && below % row_step == 0u) {
        let element = corner.target_element + below / row_step * target_stride_of(before); // modulo 2^32
        target_vectors[element / elements_per_vector()] = vector;
    }
}

// Stores one cell: the rows of a word by the columns of a vector.
fn write_cell(corner: Corner, column: u32, word: u32) {
    if (element_bytes == 1u) {
        let first = turned_bytes(four_words(column, word));
        let second = turned_bytes(four_words(column + 4u, word));
        let third = turned_bytes(four_words(column + 8u, word));
        let fourth = turned_bytes(four_words(column + 12u, word));
        write_row(corner, 0u, vec4(first.x, second.x, third.x, fourth.x));
        write_row(corner, 1u, vec4(first.y, second.y, third.y, fourth.y));
        write_row(corner, 2u, vec4(first.z, second.z, third.z, fourth.z));
        write_row(corner, 3u, vec4(first.w, second.w, third.w, fourth.w));
    } else if (element_bytes == 2u) {
        let first = two_rows_of_halves(column, word);
        let second = two_rows_of_halves(column + 2u, word);
        let third = two_rows_of_halves(column + 4u, word);
        let fourth = two_rows_of_halves(column + 6u, word);
        write_row(corner, 0u, vec4(first.x, second.x, third.x, fourth.x));
        write_row(corner, 1u, vec4(first.y, second.y, third.y, fourth.y));
    } else if (element_bytes == 4u) {
        write_row(corner, 0u, four_words(column, word));
    } else if (element_bytes == 8u) {
        write_row(corner, 0u, vec4(two_words(column, word), two_words(column + 1u, word)));
    } else {
        write_row(corner, 0u, tile[held_at(column, word)]);
    }
}

@compute @workgroup_size(workgroup_size)
fn wide_tiles(own: Invocation) {
    let last = copy.rank - 1u;
    let before = copy.rank - 2u;
    let columns = size_of(last);
    let rows = rows_spanned();
    let number = find_tile_number(min(group_number(own.group, own.groups), copy.count - 1u));
    let first_column = number.column * side;
    let first_row = number.row * side;
    let place = find_place(number.plane, before);
    let source_first = place.source_element + first_row + first_column * source_stride_of(last);
    let target_row = first_row / row_step * target_stride_of(before); // modulo 2^32
    let target_first = place.target_element + first_column + target_row;
    // Loop counts are uniform, so that compilers unroll the loops.
    for (var turn = 0u; turn < tile_vectors / workgroup_size; turn++) {
        let k = turn * workgroup_size + own.index;
        let column = k / vectors_per_side();
        let vector = k % vectors_per_side();
        if (first_column + column < columns && first_row + vector * elements_per_vector() < rows) {
            let element = source_first + column * source_stride_of(last);
            tile[held_at(column, vector)] = source_vectors[element / elements_per_vector() + vector];
        }
    }
    workgroupBarrier();
    let rows_each = max(4u / element_bytes, 1u); // per cell
    let rows_apart = select(rows_each, row_step, rows_each == 1u); // between cells with target rows
    for (var turn = 0u; turn < max(tile_vectors / rows_apart / workgroup_size, 1u); turn++) {
        let k = turn * workgroup_size + own.index;
        let column = k % vectors_per_side() * elements_per_vector();
        let row = k / vectors_per_side() * rows_apart;
        let inside = first_column + column < columns && first_row + row < rows;
        if (inside && (row_step == 1u || row < side)) {
            let element = target_first + column + row / row_step * target_stride_of(before); // modulo 2^32
            write_cell(Corner(element, first_row + row), column, row / rows_each);
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

// Transposes 4 x 4 bytes: the words of four rows, from one word of each of four columns.
fn turned_bytes(words: vec4<u32>) -> vec4<u32> {
    let even = (words.xz & vec2(0x00ff00ffu)) | ((words.yw & vec2(0x00ff00ffu)) << vec2(8u));
    let odd = ((words.xz >> vec2(8u)) & vec2(0x00ff00ffu)) | (words.yw & vec2(0xff00ff00u));
    return vec4((even.x & 0xffffu) | (even.y << 16u), (odd.x & 0xffffu) | (odd.y << 16u),
                (even.x >> 16u) | (even.y & 0xffff0000u), (odd.x >> 16u) | (odd.y & 0xffff0000u));
}

// Transposes 2 x 2 halves: the words of two rows, from one word of each of two columns.
fn turned_halves(left: u32, right: u32) -> vec2<u32> {
    return vec2((left & 0xffffu) | (right << 16u), (left >> 16u) | (right & 0xffff0000u));
}
