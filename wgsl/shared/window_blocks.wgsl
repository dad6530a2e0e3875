// window_blocks: blocks of 16 bytes of a row of a window, read from the source, forwards or with indices in reverse.
//
// Backwards a block is put together of as many reversed ones as there are channels, each of them shifted so that it is
// right for one.

override channels: u32 = 1u;    // elements an index that keep their order when a row goes backwards, 1 to 15
override mirrored: bool = true; // whether some row goes backwards

// A block of a row that may go backwards: then for each channel the reversed block that is right for it, two elements
// further along for each. All of them lie in three blocks, or four. Forwards they are the same block.
fn gather_channels(source: u32, backwards: bool, position: u32) -> vec4<u32> {
    let group = channels * element_bytes;
    let phase = (position + 16u * group) / element_bytes % channels;
    let reversed = source + copy.row_bytes - position - 16u - (group - element_bytes);
    let first = select(source + position, reversed, backwards);
    let block_0 = block_after(first, 0u);
    let block_1 = block_after(first, 1u);
    var block_2 = block_1;
    var block_3 = block_1;
    if (channels > 1u) {
        block_2 = block_after(first, 2u);
    }
    if (2u * (group - element_bytes) > 16u) {
        block_3 = block_after(first, 3u);
    }
    var value = vec4(0u);
    for (var channel = 0u; channel < channels; channel++) {
        let offset = first % 16u + select(0u, 2u * channel * element_bytes, backwards);
        let low = select(select(block_0, block_1, offset >= 16u), block_2, offset >= 32u);
        let high = select(select(block_1, block_2, offset >= 16u), block_3, offset >= 32u);
        let block = join(low, high, offset % 16u);
        let mask = copy.masks[(channel + channels - phase) % channels];
        value |= select(block, turn(block, element_bytes), backwards) & mask;
    }
    return value;
}

// The block of a row whose first byte is `position`, from the lowest byte of the row in the source on.
fn block_of_row(source: u32, backwards: bool, position: u32) -> vec4<u32> {
    if (mirrored) {
        return gather_channels(source, backwards, position);
    }
    return block_at(source + position);
}
