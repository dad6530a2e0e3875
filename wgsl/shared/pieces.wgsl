// pieces: the units of a row that an invocation copies: elements, words or blocks of 16 bytes, as the kernel says.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece, contiguous    ->  `each` neighbouring units of the row
//   piece, striped       ->  every pieces-th unit, `each` at most: neighbouring invocations touch neighbouring units
//
// Contiguous pieces are for CPUs, where invocations run in lockstep and each access that may be masked costs time: all
// accesses are unconditional. So the last piece of a row begins early enough to be full, and surplus invocations of the
// last workgroup repeat the last piece: some units are written more than once, with the same value.

override each: u32 = 4u;           // units an invocation; contiguous ones no more than every row has
override contiguous: bool = false; // whether an invocation's units are neighbours

struct Piece {
    row: u32,    // rows before its own
    number: u32, // pieces of its row before it
}

fn find_piece(invocation: u32, rows: u32) -> Piece {
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    let taken = select(row, min(row, rows - 1u), contiguous);
    return Piece(taken, min(invocation - taken * copy.pieces, copy.pieces - 1u));
}

// Whether an invocation has no piece; never where pieces are contiguous.
fn is_left_over(piece: Piece, rows: u32) -> bool {
    return !contiguous && piece.row >= rows;
}

// The first unit of a piece of a row whose units are `start` to before `stop`.
fn first_unit(piece: Piece, start: u32, stop: u32) -> u32 {
    return start + select(piece.number, min(piece.number * each, stop - start - each), contiguous);
}

// Units from one of a piece to the next.
fn unit_step() -> u32 {
    return select(copy.pieces, 1u, contiguous);
}

// The units at the ends of a row, which begins or ends inside of one, that a piece writes. A unit that two rows share
// belongs to the first of them; bytes that are no output keep their value.
struct Edges {
    first: u32, // units before the first of them; a second one is the extent's stop_unit
    count: u32, // units
}

// The first piece of a row has its head, unless the row before has it (`taken`); the last piece has the tail.
fn find_edges(piece: Piece, extent: Extent, places_per_unit: u32, taken: bool) -> Edges {
    let head = piece.number == 0u && extent.first_unit < extent.whole_unit && !taken;
    let tail = piece.number + 1u == copy.pieces && extent.stop_unit * places_per_unit < extent.stop;
    return Edges(select(extent.stop_unit, extent.first_unit, head), u32(head) + u32(tail));
}
