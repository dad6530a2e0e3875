// places: where rows, or tiles, begin.

struct Place {
    source_element: u32, // elements, from the start of the binding
    target_element: u32, // elements, from the start of the binding
}

// The place of a row-major index over the first dimensions, at 0 in all others.
fn find_place(index: u32, dimensions: u32) -> Place {
    var place = Place(copy.source_offset, copy.target_offset);
    var rest = index;
    for (var d = dimensions; d > 0u; d--) {
        let i = (d - 1u) / 4u;
        let j = (d - 1u) % 4u;
        var c = rest;
        if (d > 1u) {
            rest = divide(rest, copy.multipliers[i][j], copy.shifts[i][j]);
            c -= rest * copy.sizes[i][j];
        }
        place.source_element += c * copy.source_strides[i][j];
        place.target_element += c * copy.target_strides[i][j];
    }
    return place;
}
