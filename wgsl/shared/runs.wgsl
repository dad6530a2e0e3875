// runs: rows of the last dimension, or of the last two where the last is short; and the words at row heads and tails of
// sub-word elements.

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

fn find_runs() -> Runs {
    let last = copy.rank - 1u;
    let before = last - copy.paired; // the outer dimension of a pair
    let run = size_of(last);
    let size = run * select(1u, size_of(before), copy.paired == 1u);
    let source_stride = source_stride_of(last);
    let target_stride = target_stride_of(last);
    let source_carry = source_stride_of(before) - run * source_stride;
    let target_carry = target_stride_of(before) - run * target_stride;
    return Runs(before, run, size, source_stride, target_stride,
                copy.paired * source_carry, copy.paired * target_carry);
}

// The runs that end before the c-th element of a row.
fn runs_before(c: u32) -> u32 {
    let last = copy.rank - 1u;
    return copy.paired * divide_by(c, last);
}

// The source elements from the first element of a row to the c-th.
fn source_ahead(row: Runs, c: u32) -> u32 {
    return c * row.source_stride + runs_before(c) * row.source_carry;
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
