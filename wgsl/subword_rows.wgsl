// subword_rows: copies sub-word elements by rows of the last dimension, or of the last two where the last is short,
// without atomics.
//
//   invocation n  ->  words of piece n (see Piece); of a row's first and last one also those with its head and tail
//
// Needs target strides in descending order unless rows are whole words, each larger than the extent of all dimensions
// with smaller ones, the last one 1, no gaps inside a pair of dimensions, and at least max(each, 1) whole words in
// each row at any alignment.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// Assembles the whole words of a piece element by element.
fn copy_words(first: u32, extent: Extent, place: Place, row: Runs) {
    let per_word = elements_per_word();
    let c = first * per_word - extent.start;
    var left = row.run - (c - row.run * runs_before(c, copy.paired == 1u)); // elements to the end of the run, in a pair
    var element = place.source_element + source_ahead(row, c);
    for (var k = 0u; k < each; k++) {
        let word = first + k * unit_step();
        if (contiguous || word < extent.stop_unit) {
            var value = 0u;
            for (var i = 0u; i < per_word; i++) {
                if (!contiguous) {
                    element = place.source_element + source_ahead(row, c + k * unit_step() * per_word + i);
                }
                value |= read_subword(element) << (i * 8u * element_bytes);
                element += row.source_stride + select(0u, row.source_carry, left == 1u);
                left = select(left - 1u, row.run, left == 1u);
            }
            target_words[word] = value;
        }
    }
}

@compute @workgroup_size(workgroup_size)
fn subword_rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (piece.left_over) {
        return;
    }
    let per_word = elements_per_word();
    let row = find_runs(copy.paired == 1u);
    let place = find_place(piece.row, row.dimensions);
    let extent = find_extent(place.target_element, row.size, per_word);
    copy_words(first_unit(piece, extent.whole_unit, extent.stop_unit), extent, place, row);
    // The end of the previous row, modulo 2^32 of the first one.
    let before = find_place(piece.row - 1u, row.dimensions).target_element + row.size;
    let edges = find_edges(piece, extent, per_word, piece.row > 0u && before > extent.first_unit * per_word);
    var edge = edges.first;
    for (var left = edges.count; left > 0u; left--) {
        copy_edge_word(edge, piece, extent, place, row);
        edge = extent.stop_unit;
    }
}
