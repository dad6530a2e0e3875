// insertions: where rows of windows lie in a tensor that they are written into, and which elements, rows and blocks are,
// where windows may overlap.

override contested: bool = false; // whether windows may overlap
override in_parts: bool = false;  // whether they may in parts of rows, as last_writer_rows says

@group(0) @binding(5) var<storage, read> winners: array<u32>; // the last writer of each index, or block

// Whether a window is the last one that writes the index of a winner.
fn wins(winner: u32, window: u32) -> bool {
    if (contested) {
        return winners[winner] == copy.winner_base + window;
    }
    return true;
}

// Where a row of a window lies in the tensor.
struct TensorRow {
    window: u32,     // windows before its own, of all that there are
    winner: u32,      // winners before that of its first index, modulo 2^32
    source: u32,     // bytes before its lowest one in the batch, from the start of the binding, modulo 2^32
    start: u32,      // bytes before its first one in the tensor, inside of it or not, modulo 2^32
    backwards: bool, // whether its indices go in reverse order
    extent: Extent,  // the bytes of it that go into the tensor
}

// Row `number` of a dispatch, in units of `unit_bytes` bytes.
fn find_tensor_row(number: u32, unit_bytes: u32) -> TensorRow {
    let window = divide(number, copy.window_multiplier, copy.window_shift);
    let rest = number - window * copy.window_size;
    let pick = find_pick(window);
    let last = copy.rank - 1u;
    let place = find_window_place(pick, rest, last);
    let first = bitcast<u32>(find_offset(pick, last));
    let offset = bitcast<i32>(first - begin_of(last)); // among the indices in use
    let size = bitcast<i32>(size_of(last));
    let before = clamp(-offset, 0, size); // indices of it before those in use
    let stop = clamp(bitcast<i32>(extent_of(last)) - offset, before, size);
    let index_bytes = tensor_stride_of(last);
    let start = place.tensor + first * index_bytes;
    let low = start + bitcast<u32>(before) * index_bytes;
    let bytes = select(0u, bitcast<u32>(stop - before) * index_bytes, place.inside);
    let source = copy.batch_offset + pick.number * copy.window_stride + place.batch;
    let extent = find_extent(select(0u, low, bytes > 0u), bytes, unit_bytes);
    let winner = place.winner + first * winner_stride_of(last);
    return TensorRow(pick.number, winner, source, start, is_backwards(pick, last), extent);
}
