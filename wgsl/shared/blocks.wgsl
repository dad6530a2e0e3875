// blocks: source and target as blocks of 16 bytes, byte offsets from the start of the binding; and blocks gathered from
// source elements at a stride of 2 or 4 (the distance).

override whole_words: bool = false; // whether all elements are whole words, so that no shift within a word is needed

@group(0) @binding(1) var<storage, read> source_blocks: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_blocks: array<vec4<u32>>;

// The 16 bytes at byte `offset`, 0 to 15, of two consecutive blocks.
fn join(low: vec4<u32>, high: vec4<u32>, offset: u32) -> vec4<u32> {
    let by_two = select(low, vec4(low.zw, high.xy), (offset & 8u) != 0u);
    let beyond = select(high.xy, high.zw, (offset & 8u) != 0u);
    let words = select(by_two, vec4(by_two.yzw, beyond.x), (offset & 4u) != 0u);
    if (whole_words) {
        return words;
    }
    let next = vec4(words.yzw, select(beyond.x, beyond.y, (offset & 4u) != 0u));
    let bits = vec4(offset % 4u * 8u);
    return select((words >> bits) | (next << ((32u - bits) % 32u)), words, bits == vec4(0u));
}

// A block of the source. 32-bit byte offsets address 2^28 blocks: numbers of blocks before the binding are taken modulo
// 2^28, so that the next block after the last is block 0.
fn source_block(number: u32) -> vec4<u32> {
    return source_blocks[number & 0x0fffffffu]; // may be beyond the binding
}

// The n-th block after the block that contains byte `source`.
fn block_after(source: u32, n: u32) -> vec4<u32> {
    return source_block(source / 16u + n);
}

// The block whose first byte is `source`.
fn block_at(source: u32) -> vec4<u32> {
    // Of a row outside of the input beyond the binding.
    return join(source_blocks[source / 16u], source_blocks[(source + 15u) / 16u], source % 16u);
}

// Reverses the elements, of 1 to 16 bytes, of a block.
fn turn(block: vec4<u32>, element_bytes: u32) -> vec4<u32> {
    let words = select(block.wzyx, block.zwxy, element_bytes == 8u);
    if (whole_words) {
        return select(words, block, element_bytes == 16u);
    }
    let half = vec4(select(0u, 16u, element_bytes < 4u)); // bits
    let halves = (words >> half) | (words << half);
    let bytes = ((halves >> vec4(8u)) & vec4(0x00ff00ffu)) | ((halves << vec4(8u)) & vec4(0xff00ff00u));
    return select(halves, bytes, element_bytes == 1u);
}

// Every second element of two consecutive blocks.
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

// Gathers a block of elements at a stride of `distance`; the first is at byte `offset`, 0 to 15, of block `block`.
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

// A mask of the bytes before `stop`, 0 to 16, of a block.
fn below(stop: u32) -> vec4<u32> {
    let first = vec4(0u, 4u, 8u, 12u); // bytes before each word
    let count = min(max(vec4(stop), first) - first, vec4(4u));
    return select((vec4(1u) << (8u * (count % 4u))) - 1u, vec4(0xffffffffu), count == vec4(4u));
}

// A mask of the bytes of a block from `start` on, a byte inside, before or after the block.
fn mask_from(start: u32, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return ~below(clamp(start, base, base + 16u) - base);
}

// A mask of the bytes of a block from `start` to before `stop`, of which the block has some.
fn mask_of(start: u32, stop: u32, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return below(min(stop, base + 16u) - base) & ~below(max(start, base) - base);
}

override filled: bool = false; // whether some window extends outside of the tensor

// The block at byte `position` of a row, with the fill in place of the row's bytes before `low` and from `high` on.
fn filled_block(block: vec4<u32>, position: u32, low: u32, high: u32) -> vec4<u32> {
    if (!filled) { return block; }
    let start = clamp(bitcast<i32>(low - position), 0, 16);
    let stop = clamp(bitcast<i32>(high - position), start, 16);
    let inside = below(bitcast<u32>(stop)) & ~below(bitcast<u32>(start));
    return (block & inside) | (copy.fill & ~inside);
}

// Writes a block that contains bytes of a row and of the next row; other bytes keep their value.
fn write_edge(block: u32, row: vec4<u32>, row_mask: vec4<u32>, next: vec4<u32>, next_mask: vec4<u32>) {
    let kept = target_blocks[block] & ~(row_mask | next_mask);
    target_blocks[block] = kept | (row & row_mask) | (next & next_mask);
}
