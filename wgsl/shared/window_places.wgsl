// window_places: where a row of a window lies.

// A place in the dimensions before those of a row.
struct WindowPlace {
    tensor: u32,  // elements or bytes before it, as the dispatch counts, modulo 2^32
    batch: u32,   // likewise, from the first of its window
    claim: u32,   // claims before that of its index
    inside: bool, // whether the tensor has it, among the indices that are in use
    rest: u32,    // of the index, in the dimensions of a row
}

// The place of an index into a window, over its first dimensions.
fn find_window_place(pick: Pick, index: u32, dimensions: u32) -> WindowPlace {
    var place = WindowPlace(copy.tensor_offset, 0u, copy.claim_offset, true, index);
    for (var d = 0u; d < dimensions; d++) {
        let i = d / 4u;
        let j = d % 4u;
        let c = divide(place.rest, copy.multipliers[i][j], copy.shifts[i][j]);
        place.rest -= c * copy.inner[i][j];
        let index = find_index(pick, d, c);
        place.tensor += index * copy.tensor_strides[i][j];
        place.batch += c * copy.batch_strides[i][j];
        place.claim += index * copy.claim_strides[i][j];
        place.inside = place.inside && index - copy.begins[i][j] < copy.extents[i][j];
    }
    return place;
}
