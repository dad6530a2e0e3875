// edge_words: words that hold the ends of rows of elements of 1 and 2 bytes, put together of two rows and of what they
// held.

// How far a row's c-th element lies from its first in the source, in elements.
fn source_ahead(row: Runs, c: u32) -> u32 {
    return c * row.source_stride + runs_before(c) * row.source_carry;
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
