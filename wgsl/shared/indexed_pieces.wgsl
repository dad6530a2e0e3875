// indexed_pieces: the elements of an indexed copy that an invocation copies, and whether a scatter writes them.
//
//   invocation n  ->  piece n % pieces of row n / pieces, or with `down` piece n / rows of row n % rows
//   piece         ->  `each` elements of the row, blocked or striped (see pieces)
//
// A row is the last dimension, of at least `each` elements where pieces are contiguous.

override down: bool = false;      // whether consecutive invocations take consecutive rows; needs contiguous pieces
override contested: bool = false; // whether two indices may name one element

@group(0) @binding(4) var<storage, read> winners: array<u32>; // for each element, 1 + number of its last index

struct IndexedPiece {
    row: IndexedRow, // that contains it
    first: u32,      // first element, from the start of the row
    of_row: Reached, // the tables' offsets for the row's first element
    left_over: bool, // whether it is empty
}

fn find_indexed_piece(invocation: u32) -> IndexedPiece {
    var piece = find_piece(invocation, copy.count);
    if (down) {
        let number = divide(invocation, copy.rows_multiplier, copy.rows_shift);
        piece = Piece(invocation - number * copy.count, min(number, copy.pieces - 1u));
    }
    let row = find_indexed_row(piece.row);
    let first = first_unit(piece, 0u, size_of(copy.rank - 1u));
    return IndexedPiece(row, first, find_reached(row, 0u), is_left_over(piece, copy.count));
}

struct IndexedElement {
    source_element: u32, // elements, without the tables' offsets, modulo 2^32
    target_element: u32, // elements, without the tables' offsets, modulo 2^32
    winner: u32,         // position in `winners`
    number: u32,         // number of its index
    further: u32,        // the tables' offset in elements, modulo 2^32
    inside: bool,        // whether all indices were in range
    is_one: bool,        // whether the element exists
}

// The k-th element of a piece.
fn find_indexed_element(piece: IndexedPiece, k: u32) -> IndexedElement {
    let last = copy.rank - 1u;
    let c = piece.first + k * unit_step();
    var reached = piece.of_row;
    if (!by_rows) {
        reached = find_reached(piece.row, c);
    }
    return IndexedElement(piece.row.source_element + c * source_step_of(last),
                          piece.row.target_element + c * target_step_of(last),
                          piece.row.winner + c * winner_step_of(last) + reached.places,
                          piece.row.number + c * number_step_of(last),
                          reached.elements,
                          reached.inside,
                          contiguous || (!piece.left_over && c < size_of(last)));
}

// Whether a scatter writes an element: its index must be in range, and no later index may name the same target.
fn is_written(element: IndexedElement) -> bool {
    if (contested && element.inside) {
        return element.is_one && winners[element.winner] == element.number + 1u;
    }
    return element.is_one && element.inside;
}
