// edges: the units at the ends of rows that begin or end inside of one.
//
// A unit that two rows share belongs to the first of them; bytes that are no output keep their value.

// What a piece has of the ends of its row.
struct Edges {
    first: u32, // units before the first of them; a second one is the extent's stop_unit
    count: u32, // units
}

// The first piece of a row has its head, unless that is taken, because the row before has it; the last piece the tail.
fn find_edges(piece: Piece, extent: Extent, places_per_unit: u32, taken: bool) -> Edges {
    let head = piece.number == 0u && extent.first_unit < extent.whole_unit && !taken;
    let tail = piece.number + 1u == copy.pieces && extent.stop_unit * places_per_unit < extent.stop;
    return Edges(select(extent.stop_unit, extent.first_unit, head), u32(head) + u32(tail));
}
