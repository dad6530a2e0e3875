// extents: where rows begin and end in the target, and the units that are all theirs.

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
