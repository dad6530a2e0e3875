// pieces: the units of a row that an invocation copies: elements, words or blocks of 16 bytes, as the kernel says.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece p, contiguous  ->  units p * each to (p + 1) * each of the row (blocked)
//   piece p, striped     ->  units p, p + pieces, ..., at most `each`: consecutive invocations access consecutive units
//
// Contiguous pieces are for CPU adapters, whose invocations run in SIMD lanes and pay for each masked access: all
// accesses are unconditional. The last piece of a row is moved back until it is full, and surplus invocations of the
// last workgroup repeat the last piece: some units are written more than once, with the same value.

override each: u32 = 4u;           // units per invocation; where contiguous, at most the units of every row
override contiguous: bool = false; // blocked, not striped

struct Piece {
    row: u32,    // row index
    number: u32, // piece index within the row
}

fn find_piece(invocation: u32, rows: u32) -> Piece {
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    let taken = select(row, min(row, rows - 1u), contiguous);
    return Piece(taken, min(invocation - taken * copy.pieces, copy.pieces - 1u));
}

// Whether an invocation is surplus; never where pieces are contiguous.
fn is_left_over(piece: Piece, rows: u32) -> bool {
    return !contiguous && piece.row >= rows;
}

// The first unit of a piece of a row with units from `start` to before `stop`.
fn first_unit(piece: Piece, start: u32, stop: u32) -> u32 {
    return start + select(piece.number, min(piece.number * each, stop - start - each), contiguous);
}

// Units between consecutive units of a piece.
fn unit_step() -> u32 {
    return select(copy.pieces, 1u, contiguous);
}

// The partial units at the head and tail of an unaligned row that a piece writes. The first of two rows that share a
// unit writes it; bytes outside the output keep their value.
struct Edges {
    first: u32, // the first of them; the second is the extent's stop_unit
    count: u32, // 0 to 2
}

// The first piece of a row writes the head, unless the previous row does (`taken`); the last piece writes the tail.
fn find_edges(piece: Piece, extent: Extent, places_per_unit: u32, taken: bool) -> Edges {
    let head = piece.number == 0u && extent.first_unit < extent.whole_unit && !taken;
    let tail = piece.number + 1u == copy.pieces && extent.stop_unit * places_per_unit < extent.stop;
    return Edges(select(extent.stop_unit, extent.first_unit, head), u32(head) + u32(tail));
}
