// steps: blocks of elements that are 2 or 4 elements of the source apart (their distance).

// Every second element of two neighbours.
fn halve(low: vec4<u32>, high: vec4<u32>, element_bytes: u32) -> vec4<u32> {
    if (whole_words) {
        return select(vec4(low.xz, high.xz), vec4(low.xy, high.xy), element_bytes == 8u);
    }
    if (element_bytes == 8u) {
        return vec4(low.xy, high.xy);
    }
    if (element_bytes == 4u) {
        return vec4(low.xz, high.xz);
    }
    var first = vec4(low.xz, high.xz);
    var second = vec4(low.yw, high.yw);
    if (element_bytes == 1u) {
        first = (first & vec4(0xffu)) | ((first >> vec4(8u)) & vec4(0xff00u));
        second = (second & vec4(0xffu)) | ((second >> vec4(8u)) & vec4(0xff00u));
    }
    return (first & vec4(0xffffu)) | (second << vec4(16u));
}

// The block of elements `distance` apart, the first of which lies `offset` bytes, 0 to 15, into a block.
fn gather_step(block: u32, offset: u32, distance: u32, element_bytes: u32) -> vec4<u32> {
    let block_0 = source_block(block);
    let block_1 = source_block(block + 1u);
    let block_2 = source_block(block + 2u);
    let pair = halve(join(block_0, block_1, offset), join(block_1, block_2, offset), element_bytes);
    if (distance == 2u) {
        return pair;
    }
    let block_3 = source_block(block + 3u);
    let block_4 = source_block(block + 4u);
    let next = halve(join(block_2, block_3, offset), join(block_3, block_4, offset), element_bytes);
    return halve(pair, next, element_bytes);
}
