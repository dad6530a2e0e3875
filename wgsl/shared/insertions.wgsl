// insertions: offsets of window rows in the tensor that they are inserted into, and which elements, rows and blocks are
// written where windows overlap.

override in_parts: bool = false; // whether rows may overlap in part, so that last_writer_rows runs first

@group(0) @binding(5) var<storage, read> winners: array<u32>; // the last window that writes each index or block

// Whether `window` is the last one that writes the index at position `winner` of `winners`.
fn wins(winner: u32, window: u32) -> bool {
    if (contested) {
        return winners[winner] == copy.winner_base + window;
    }
    return true;
}

// A row of a window, and its byte range in the tensor.
struct TensorRow {
    window: u32,     // window index, among all windows
    winner: u32,     // position in `winners` of its first index, modulo 2^32
    source: u32,     // its lowest byte in the batch, from the start of the binding, modulo 2^32
    start: u32,      // its first byte in the tensor, possibly outside, modulo 2^32
    backwards: bool, // whether its indices are reversed
    extent: Extent,  // its bytes inside the tensor
}

// Row `number` of a dispatch, in blocks of 16 bytes.
fn find_tensor_row(number: u32) -> TensorRow {
    let last = copy.rank - 1u;
    let place = find_window_place(number, last);
    let first = bitcast<u32>(find_offset(place.pick, last));
    let offset = bitcast<i32>(first - copy.dimensions[last].begin); // relative to the indices in use
    let size = bitcast<i32>(size_of(last));
    let before = clamp(-offset, 0, size); // indices of the row before those in use
    let stop = clamp(bitcast<i32>(copy.dimensions[last].extent) - offset, before, size);
    let index_bytes = copy.dimensions[last].tensor_stride;
    let start = place.tensor + first * index_bytes;
    let low = start + bitcast<u32>(before) * index_bytes;
    let bytes = select(0u, bitcast<u32>(stop - before) * index_bytes, place.inside);
    let extent = find_extent(select(0u, low, bytes > 0u), bytes, 16u);
    let winner = place.winner + first * copy.dimensions[last].winner_stride;
    let source = place_in_batch(place);
    return TensorRow(place.pick.number, winner, source, start, is_backwards(place.pick, last), extent);
}
