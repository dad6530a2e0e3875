// narrow_rows: elements of 1 and 2 bytes, row by row of the last dimension, or, where that is short, of the last two,
// without atomics.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` neighbouring words of the row, or every pieces-th; why, says pieces.wgsl
//   first, last   ->  also the words that hold the row's ends
//
// Needs target strides in descending order, each larger than the reach of all dimensions after it, the last one 1, no
// gaps inside a pair, and rows that hold `each` whole words, one at least, wherever they begin.

override element_nbytes: u32; // bytes an element: 1 or 2

// How far a row's c-th element lies from its first in the source, in elements.
fn source_ahead(row: Runs, c: u32) -> u32 {
    return c * row.source_stride + runs_before(c) * row.source_carry;
}

// Words inside a row, put together element by element.
fn copy_words(first: u32, extent: Extent, place: Place, row: Runs) {
    let lanes = elements_per_word();
    let c = first * lanes - extent.start;
    var left = row.run - (c - row.run * runs_before(c)); // elements to the end of the run, in a pair
    var element = place.source_element + source_ahead(row, c);
    for (var k = 0u; k < each; k++) {
        let word = first + k * unit_step();
        if (contiguous || word < extent.stop_unit) {
            var value = 0u;
            for (var i = 0u; i < lanes; i++) {
                if (!contiguous) {
                    element = place.source_element + source_ahead(row, c + k * unit_step() * lanes + i);
                }
                value |= read_narrow(element) << (i * 8u * element_nbytes);
                element += row.source_stride + select(0u, row.source_carry, left == 1u);
                left = select(left - 1u, row.run, left == 1u);
            }
            target_words[word] = value;
        }
    }
}

// A word at an end of a row, together with what the next row has in it.
fn copy_edge_word(word: u32, piece: Piece, extent: Extent, place: Place, row: Runs) {
    let lanes = elements_per_word();
    let bits = 8u * element_nbytes;
    let next = find_place(piece.row + 1u, row.dimensions);
    var value = target_words[word];
    for (var i = 0u; i < lanes; i++) {
        let element = word * lanes + i;
        let inside = element >= extent.start && element < extent.stop;
        let follows = piece.row + 1u < copy.count && element >= next.target_element;
        if (inside || follows) {
            let start = select(place.source_element, next.source_element, follows);
            let c = element - select(extent.start, next.target_element, follows);
            value = insertBits(value, read_narrow(start + source_ahead(row, c)), i * bits, bits);
        }
    }
    target_words[word] = value;
}

@compute @workgroup_size(workgroup_size)
fn narrow_rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.lane), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let lanes = elements_per_word();
    let row = find_runs();
    let place = find_place(piece.row, row.dimensions);
    let extent = find_extent(place.target_element, row.size, lanes);
    copy_words(first_unit(piece, extent.whole_unit, extent.stop_unit), extent, place, row);
    let before = find_place(piece.row - 1u, row.dimensions).target_element + row.size; // where the row before ends
    let edges = find_edges(piece, extent, lanes, piece.row > 0u && before > extent.first_unit * lanes);
    var edge = edges.first;
    for (var left = edges.count; left > 0u; left--) {
        copy_edge_word(edge, piece, extent, place, row);
        edge = extent.stop_unit;
    }
}
