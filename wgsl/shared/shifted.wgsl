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

// Every second element of two neighbours.
fn halve(low: vec4<u32>, high: vec4<u32>) -> vec4<u32> {
    if (whole_words) {
        return select(vec4(low.xz, high.xz), vec4(low.xy, high.xy), copy.element_bytes == 8u);
    }
    if (copy.element_bytes == 8u) {
        return vec4(low.xy, high.xy);
    }
    if (copy.element_bytes == 4u) {
        return vec4(low.xz, high.xz);
    }
    var first = vec4(low.xz, high.xz);
    var second = vec4(low.yw, high.yw);
    if (copy.element_bytes == 1u) {
        first = (first & vec4(0xffu)) | ((first >> vec4(8u)) & vec4(0xff00u));
        second = (second & vec4(0xffu)) | ((second >> vec4(8u)) & vec4(0xff00u));
    }
    return (first & vec4(0xffffu)) | (second << vec4(16u));
}

// The block of a row whose lowest source byte lies `offset` bytes, 0 to 15, into a block. The last load may lie past
// the row, and the first one before the binding.
fn read_from(block: u32, offset: u32, distance: u32) -> vec4<u32> {
    if (distance == 1u) {
        let far = source_block(block + u32(offset != 0u));
        return in_order(join(source_block(block), far, offset));
    }
    let block_0 = source_block(block);
    let block_1 = source_block(block + 1u);
    let block_2 = source_block(block + 2u);
    let pair = halve(join(block_0, block_1, offset), join(block_1, block_2, offset));
    if (distance == 2u) {
        return in_order(pair);
    }
    let block_3 = source_block(block + 3u);
    let block_4 = source_block(block + 4u);
    return in_order(halve(pair, halve(join(block_2, block_3, offset), join(block_3, block_4, offset))));
}

// The block of a row whose lowest source byte is `source`.
fn read_block(source: u32, distance: u32) -> vec4<u32> {
    return read_from(source / 16u, source % 16u, distance);
}
