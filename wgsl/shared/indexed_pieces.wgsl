// indexed_pieces: the elements of an indexed copy that an invocation takes, and which of them a scatter writes.
//
//   invocation n  ->  piece n % pieces of row n / pieces, or with `down` piece n / rows of row n % rows
//   piece         ->  `each` elements of the row: neighbours, or every pieces-th (see pieces)
//
// A row is the last dimension, of `each` elements at least where pieces are contiguous.

override down: bool = false;      // whether invocations go through a piece of all rows first; of contiguous pieces
override contested: bool = false; // whether two indices may name one element

@group(0) @binding(4) var<storage, read> winners: array<u32>; // of a scatter: the last writer of each place

struct IndexedPiece {
    row: IndexedRow, // that it is a part of
    first: u32,      // elements of the row before its first
    of_row: Reached, // what the tables say of the row's first element
    left_over: bool, // whether it has no elements
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
    source_element: u32, // elements, without what tables add, modulo 2^32
    target_element: u32, // elements, without what tables add, modulo 2^32
    winner: u32,          // winners before that on its place
    number: u32,         // indices before its own
    further: u32,        // elements that tables add, modulo 2^32
    inside: bool,        // whether all indices were in range
    is_one: bool,        // whether there is such an element
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

// Whether an element is written at its index: none is at one that is out of range, or that a later one winners.
fn is_written(element: IndexedElement) -> bool {
    if (contested && element.inside) {
        return element.is_one && winners[element.winner] == element.number + 1u;
    }
    return element.is_one && element.inside;
}
