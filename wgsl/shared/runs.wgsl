// runs: rows of the last dimension, or, where that is short, of the last two; and the words at the ends of rows of
// elements of 1 and 2 bytes.

// A row: runs of the last dimension, as many as the dimension before has, or one.
struct Runs {
    dimensions: u32,    // before those of a row
    run: u32,           // elements a run
    size: u32,          // elements a row
    source_stride: u32, // elements from one of a run to the next, modulo 2^32
    target_stride: u32, // elements from one of a run to the next
    source_carry: u32,  // elements more from the last of a run to the first of the next, modulo 2^32; 0 of one run
    target_carry: u32,  // elements more from the last of a run to the first of the next; 0 of one run
}

fn find_runs() -> Runs {
    let last = copy.rank - 1u;
    let before = last - copy.paired; // the other dimension of a pair
    let run = size_of(last);
    let size = run * select(1u, size_of(before), copy.paired == 1u);
    let source_stride = source_stride_of(last);
    let target_stride = target_stride_of(last);
    let source_carry = source_stride_of(before) - run * source_stride;
    let target_carry = target_stride_of(before) - run * target_stride;
    return Runs(before, run, size, source_stride, target_stride,
                copy.paired * source_carry, copy.paired * target_carry);
}

// Runs that end before a row's c-th element.
fn runs_before(c: u32) -> u32 {
    let last = copy.rank - 1u;
    return copy.paired * divide_by(c, last);
}

// Source elements from a row's first element to its c-th one.
fn source_ahead(row: Runs, c: u32) -> u32 {
    return c * row.source_stride + runs_before(c) * row.source_carry;
}

// Writes a word at an end of a row, with the elements of the next row that are in it; other bytes keep their value.
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
