// tensor_rows: where rows of windows go that are inserted into a tensor.

struct TensorRow {
    source: u32,     // bytes before its lowest one in the batch, from the start of the binding, modulo 2^32
    start: u32,      // bytes before its first one in the tensor, inside of it or not, modulo 2^32
    backwards: bool, // whether its indices go in reverse order
    extent: Extent,  // the bytes of it that go into the tensor
}

// A row of a dispatch, whose units are so many bytes.
fn find_tensor_row(number: u32, unit_nbytes: u32) -> TensorRow {
    let window = divide(number, copy.window_multiplier, copy.window_shift);
    let rest = number - window * copy.window_size;
    let pick = find_pick(window);
    let last = copy.rank - 1u;
    let place = find_window_place(pick, rest, last);
    let first = bitcast<u32>(find_offset(pick, last));
    let offset = bitcast<i32>(first - copy.begins[last / 4u][last % 4u]); // among the indices in use
    let size = bitcast<i32>(copy.sizes[last / 4u][last % 4u]);
    let before = clamp(-offset, 0, size); // indices of it before those in use
    let stop = clamp(bitcast<i32>(copy.extents[last / 4u][last % 4u]) - offset, before, size);
    let index_nbytes = copy.tensor_strides[last / 4u][last % 4u];
    let start = place.tensor + first * index_nbytes;
    let low = start + bitcast<u32>(before) * index_nbytes;
    let written = place.inside && wins(place.claim + first * copy.claim_strides[last / 4u][last % 4u], pick.number);
    let nbytes = select(0u, bitcast<u32>(stop - before) * index_nbytes, written);
    let source = copy.batch_offset + pick.number * copy.window_stride + place.batch;
    let extent = find_extent(select(0u, low, nbytes > 0u), nbytes, unit_nbytes);
    return TensorRow(source, start, is_backwards(pick, last), extent);
}
