// shifted: blocks of a row whose source elements are 1, 2 or 4 elements apart (its distance), read from any byte on.

override way: i32 = 0; // 1: all rows go forwards, -1: backwards, 0: the sign of the last source stride says it

fn is_forwards() -> bool {
    let last = copy.rank - 1u;
    return way > 0 || (way == 0 && bitcast<i32>(source_stride_of(last)) > 0);
}

// Elements in the order in which the row reads them.
fn in_order(block: vec4<u32>) -> vec4<u32> {
    if (way > 0) {
        return block;
    }
    return select(turn(block, copy.element_bytes), block, is_forwards());
}

// Where a row begins and ends, in bytes and blocks of the target.
fn find_row_extent(place: Place) -> Extent {
    let last = copy.rank - 1u;
    let size_bytes = size_of(last) * copy.element_bytes;
    return find_extent(place.target_element * copy.element_bytes, size_bytes, 16u);
}

// The lowest source byte of a block of a row.
fn find_source(place: Place, block: u32, distance: u32) -> u32 {
    let ahead = (block * 16u - place.target_element * copy.element_bytes) * distance;
    let source = place.source_element * copy.element_bytes;
    return select(source - ahead - (16u - copy.element_bytes) * distance, source + ahead, is_forwards());
}

// The block of a row whose lowest source byte lies `offset` bytes, 0 to 15, into a block. The last load may lie past
// the row, and the first one before the binding.
fn read_from(block: u32, offset: u32, distance: u32) -> vec4<u32> {
    if (distance == 1u) {
        let far = source_block(block + u32(offset != 0u));
        return in_order(join(source_block(block), far, offset));
    }
    return in_order(gather_step(block, offset, distance, copy.element_bytes));
}

// The block of a row whose lowest source byte is `source`.
fn read_block(source: u32, distance: u32) -> vec4<u32> {
    return read_from(source / 16u, source % 16u, distance);
}
