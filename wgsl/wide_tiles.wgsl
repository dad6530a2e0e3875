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

@group(0) @binding(0) var<uniform> copy: Copy;
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
