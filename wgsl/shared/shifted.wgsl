// shifted: blocks of a row, read at any byte offset from source elements at a stride of 1, 2 or 4 (the distance).

override way: i32 = 0; // sign of the last source stride: 1 or -1; 0: read from the parameters

fn is_forwards() -> bool {
    let last = copy.rank - 1u;
    return way > 0 || (way == 0 && bitcast<i32>(source_stride_of(last)) > 0);
}

// The elements of a block in the order of the target row.
fn in_order(block: vec4<u32>) -> vec4<u32> {
    if (way > 0) {
        return block;
    }
    return select(turn(block, copy.element_bytes), block, is_forwards());
}

// The target range of a row, in bytes and blocks.
fn find_row_extent(place: Place) -> Extent {
    let last = copy.rank - 1u;
    let size_bytes = size_of(last) * copy.element_bytes;
    return find_extent(place.target_element * copy.element_bytes, size_bytes, 16u);
}

// The lowest source byte of target block `block` of a row.
fn find_source(place: Place, block: u32, distance: u32) -> u32 {
    let ahead = (block * 16u - place.target_element * copy.element_bytes) * distance; // modulo 2^32
    let source = place.source_element * copy.element_bytes;
    return select(source - ahead - (16u - copy.element_bytes) * distance, source + ahead, is_forwards());
}

// Reads a block of a row whose lowest source byte is at byte `offset`, 0 to 15, of block `block`. Loads may extend past
// the end of the row and before the binding.
fn read_from(block: u32, offset: u32, distance: u32) -> vec4<u32> {
    if (distance == 1u) {
        let far = source_block(block + u32(offset != 0u));
        return in_order(join(source_block(block), far, offset));
    }
    return in_order(gather_step(block, offset, distance, copy.element_bytes));
}

// Reads a block of a row whose lowest source byte is `source`.
fn read_block(source: u32, distance: u32) -> vec4<u32> {
    return read_from(source / 16u, source % 16u, distance);
}
