// window_words: copies many windows of one tensor of sub-word elements, without atomics.
//
//   invocation n  ->  words n * each to (n + 1) * each of the output, counted from the word of its first element
//   element e     ->  element e % window_size of window e / window_size, both counted from the dispatch's first
//
// An invocation owns whole words and assembles them row by row, across windows. Bytes before the first window and after
// the last keep their value. Needs windows in order and without gaps in the target, at least two dimensions, and a
// source that is bound as a whole.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(0) var<uniform> copy: Windows;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// The last two dimensions of windows; a row spans both.
struct Pair {
    sizes: vec2<u32>,   // indices of a window
    steps: vec2<u32>,   // of the input's indices
    extents: vec2<u32>, // indices of the input
    strides: vec2<u32>, // source elements, modulo 2^32
}

struct PairRow {
    start: u32,        // its first element, counted from the dispatch's first
    source: u32,       // source element at index 0, 0 of the pair, modulo 2^32
    inside: bool,      // whether its indices in the dimensions before the pair are in use
    firsts: vec2<u32>, // input indices of its first element
    steps: vec2<u32>,  // of the input's indices, modulo 2^32
}

// The input index of an element of a row.
struct Cursor {
    index: vec2<u32>, // of the input
    left: u32,        // elements to the end of the last dimension, this one included
}

fn find_pair() -> Pair {
    let x = copy.rank - 2u;
    let y = copy.rank - 1u;
    return Pair(vec2(size_of(x), size_of(y)),
                vec2(copy.dimensions[x].step, copy.dimensions[y].step),
                vec2(copy.dimensions[x].extent, copy.dimensions[y].extent),
                vec2(copy.dimensions[x].tensor_stride, copy.dimensions[y].tensor_stride));
}

// The row that contains an element of the dispatch.
fn find_pair_row(element: u32, pair: Pair) -> PairRow {
    let x = copy.rank - 2u;
    let y = copy.rank - 1u;
    let place = find_window_place(element, x);
    let firsts = vec2(find_index(place.pick, x, 0u), find_index(place.pick, y, 0u));
    let backwards = vec2(is_backwards(place.pick, x), is_backwards(place.pick, y));
    let steps = select(pair.steps, 0u - pair.steps, backwards); // modulo 2^32
    return PairRow(element - place.rest, place.tensor, place.inside, firsts, steps);
}

fn find_cursor(row: PairRow, pair: Pair, element: u32) -> Cursor {
    let x = copy.rank - 2u;
    let c = divide_by(element - row.start, x);
    let rest = element - row.start - c * pair.sizes.y;
    return Cursor(row.firsts + vec2(c, rest) * row.steps, pair.sizes.y - rest);
}

fn advance(cursor: Cursor, row: PairRow, pair: Pair) -> Cursor {
    if (cursor.left > 1u) {
        return Cursor(cursor.index + vec2(0u, row.steps.y), cursor.left - 1u);
    }
    return Cursor(vec2(cursor.index.x + row.steps.x, row.firsts.y), pair.sizes.y);
}

fn read_input(row: PairRow, pair: Pair, index: vec2<u32>) -> u32 {
    let inside = row.inside && all(index < pair.extents);
    let ahead = index * pair.strides;
    return select(copy.fill.x, read_subword(select(0u, row.source + ahead.x + ahead.y, inside)), inside);
}

@compute @workgroup_size(workgroup_size)
fn window_words(own: Invocation) {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    let pair = find_pair();
    let start = copy.batch_offset + copy.first * copy.window_stride;
    let before = start % per_word; // elements of the first word before the output
    let first = invocation_number(own.group, own.groups, own.index) * copy.each * per_word;
    let stop = min(first + copy.each * per_word - before, copy.elements);
    var element = max(first, before) - before;
    while (element < stop) {
        let row = find_pair_row(element, pair);
        let row_stop = min(row.start + copy.row_size, stop);
        var cursor = find_cursor(row, pair, element);
        for (var word = (start + element) / per_word; word * per_word < start + row_stop; word++) {
            var value = target_words[word];
            for (var i = 0u; i < per_word; i++) {
                let read = read_input(row, pair, cursor.index); // unused outside of the row
                if (word * per_word + i - start - element < row_stop - element) {
                    value = insertBits(value, read, i * bits, bits);
                    cursor = advance(cursor, row, pair);
                }
            }
            target_words[word] = value;
        }
        element = row_stop;
    }
}
