// block_edges: the blocks that hold the ends of rows, put together of two rows and of what they held.

// The bytes of a block that lie in a row.
fn mask_of(extent: Extent, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return mask(max(extent.start, base) - base, min(extent.stop, base + 16u) - base);
}

// The bytes of a block from `start` on, which lies in it, before it or after it.
fn mask_from(start: u32, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return mask(clamp(start, base, base + 16u) - base, 16u);
}

// A block that holds bytes of a row, bytes of the next, and others, which keep their value.
fn write_edge(block: u32, row: vec4<u32>, row_mask: vec4<u32>, next: vec4<u32>, next_mask: vec4<u32>) {
    let kept = target_blocks[block] & ~(row_mask | next_mask);
    target_blocks[block] = kept | (row & row_mask) | (next & next_mask);
}
