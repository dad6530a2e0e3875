// edges: the units at the ends of rows that begin or end inside of one.
//
// A unit that two rows share belongs to the first of them; bytes that are no output keep their value.

// A row in the target, in places: elements or bytes, as the kernel says.
struct Extent {
    start: u32,      // places before its first
    stop: u32,       // places before its end
    first_unit: u32, // units before the one that holds its first place
    whole_unit: u32, // units before the first that is all the row's
    stop_unit: u32,  // units before the end of the last that is all the row's
}

fn find_extent(start: u32, size: u32, places_per_unit: u32) -> Extent {
    let stop = start + size;
    let whole_unit = (start + places_per_unit - 1u) / places_per_unit;
    return Extent(start, stop, start / places_per_unit, whole_unit, stop / places_per_unit);
}

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
