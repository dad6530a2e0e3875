// register_tiles: transposes tiles of 4 x 4 sub-word elements in registers. The target is contiguous along the last
// dimension (columns); the source along the one before it (rows).
//
//   invocation n  ->  tiles of index n of all dimensions before the last three: the first of these has `each` tiles,
//                     the last two are the rows and columns of a tile
//
// Needs the four elements of each column and of each row of a tile in whole words: offsets and all other strides are
// multiples of four.
// Repeats: surplus invocations write the last tiles again

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// One word of each of four columns: the first column begins at source element `first`.
fn four_columns(first: u32, word: u32) -> vec4<u32> {
    let step = source_stride_of(copy.rank - 1u);
    let places = (vec4(first) + vec4(0u, 1u, 2u, 3u) * step) / elements_per_word() + word;
    return vec4(source_words[places.x], source_words[places.y], source_words[places.z], source_words[places.w]);
}

// Writes a tile whose first row begins at target element `first`.
fn write_tile(source_first: u32, first: u32) {
    let row = target_stride_of(copy.rank - 2u) / elements_per_word(); // words
    var place = first / elements_per_word();
    for (var word = 0u; word < element_bytes; word++) {
        let words = four_columns(source_first, word);
        if (element_bytes == 1u) {
            let rows = turned_bytes(words);
            target_words[place] = rows.x;
            target_words[place + row] = rows.y;
            target_words[place + 2u * row] = rows.z;
            target_words[place + 3u * row] = rows.w;
        } else {
            let left = turned_halves(words.x, words.y);
            let right = turned_halves(words.z, words.w);
            target_words[place] = left.x;
            target_words[place + 1u] = right.x;
            target_words[place + row] = left.y;
            target_words[place + row + 1u] = right.y;
        }
        place += 2u * row; // to the rows of the next halves
    }
}

@compute @workgroup_size(workgroup_size)
fn register_tiles(own: Invocation) {
    let tiles = copy.rank - 3u;
    let place = find_place(min(invocation_number(own.group, own.groups, own.index), copy.count - 1u), tiles);
    let source_step = source_stride_of(tiles);
    let target_step = target_stride_of(tiles);
    for (var k = 0u; k < each; k++) {
        write_tile(place.source_element + k * source_step, place.target_element + k * target_step);
    }
}
