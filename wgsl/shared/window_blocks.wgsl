// window_blocks: reads blocks of 16 bytes of a window row from the source, forwards or with reversed indices.

override channels: u32 = 1u;    // elements per index, which keep their order in a reversed row: 1 to 15
override mirrored: bool = true; // whether some row is reversed

// Reads a block of a row that may be reversed. A reversed block combines one reversed source block per channel, each
// shifted so that it is correct for that channel. That of each channel starts two elements after that of the previous
// one; all are within three or four source blocks. Without reversal, all are the same block.
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

// Reads the block at byte `position` of a row; `source` is the row's lowest source byte.
fn block_of_row(source: u32, backwards: bool, position: u32) -> vec4<u32> {
    if (mirrored) {
        return gather_channels(source, backwards, position);
    }
    return block_at(source + position);
}
