// pixels: rows of pixels of 1 to 4 channels of 1 or 2 bytes, with channels and pixels reordered, reversed or selected:
// flips, BGR, RGBA to RGB, one channel of several. Channels are interleaved or planar on either side; interleaved
// pixels may be repeated. Writes whole blocks of 16 bytes only; subword_ends writes the blocks that rows share. Pixels
// that are strided in the target are merged into all blocks that a row touches: a channel, every second element.
//
//   invocation n  ->  group n % pieces of row n / pieces: `group_blocks` blocks of the target, which contain whole
//                     pixels: contiguous, or, with `apart`, one block of each channel's plane
//
// A row is the last two dimensions, pixels and channels, or the last three, with repeats between them. It is contiguous
// in the target, or in each plane of it, or strided: then no two rows share a block.

@group(0) @binding(0) var<uniform> copy: Copy;

override element_bytes: u32 = 1u; // bytes per element: 1 or 2
override channels: u32 = 3u;      // elements per pixel: 1 to 4
override target_step: u32 = 3u;   // elements between pixels in the target: `channels`, or more where they are strided
override repeats: u32 = 1u;       // copies of each pixel; if several, all are in one group
override pixel_step: i32 = 3;     // elements between pixels in a part of the source
override channel_step: i32 = 1;   // elements between channels in the window, part after part
override group_blocks: u32 = 3u;  // target blocks per group
override parts: u32 = 1u;         // contiguous source ranges per group: one, or one per plane
override part_blocks: u32 = 4u;   // blocks that a group reads of a part, at any alignment
override apart: bool = false;     // whether the target is planar
override unaligned: bool = true;  // whether groups begin at different elements of pixels, or rows end inside a block
override ahead: u32 = 0u;         // elements of a strided pixel before its group, if as many before each group

fn strided() -> bool {
    return target_step > channels;
}

// Pixels that a group reads.
fn pixels_read() -> i32 {
    let per_group = group_blocks * 16u / (target_step * repeats * element_bytes);
    return i32(per_group + u32((unaligned && target_step > 1u) || ahead > 0u));
}

// The lowest element that a group reads of a part, counted from its first pixel's first channel.
fn lowest() -> i32 {
    return min(0, (pixels_read() - 1) * pixel_step) + min(0, (i32(channels) - 1) * channel_step);
}

// The words that a group reads, part after part. The maximum is four planes of pixels at a stride of 4: 5 blocks each.
var<private> window: array<u32, 48>;

// The n-th element of the group, read from the window; arbitrary past its pixels, 0 between them.
fn pixel_element(n: u32) -> u32 {
    let per_block = 16u / element_bytes; // elements a block
    let element = n + ahead;
    let pixel = min(i32(select(element / (target_step * repeats), n % per_block, apart)), pixels_read() - 1);
    let channel = i32(select(element % target_step, n / per_block, apart));
    let held = min(channel, i32(channels) - 1); // between pixels of the target any
    let place = u32(pixel * pixel_step + held * channel_step - lowest()) * element_bytes; // bytes
    // Not extractBits, whose range checks prevent compilers from unrolling the callers.
    let value = (window[place / 4u] >> (place % 4u * 8u)) & (0xffffffffu >> (32u - 8u * element_bytes));
    return select(value, 0u, channel >= i32(channels));
}

fn read_word(word: u32) -> u32 {
    let per_word = 4u / element_bytes;
    var value = 0u;
    for (var i = 0u; i < per_word; i++) {
        value |= pixel_element(word * per_word + i) << (i * 8u * element_bytes);
    }
    return value;
}

fn read_group_block(k: u32) -> vec4<u32> {
    return vec4(read_word(4u * k), read_word(4u * k + 1u), read_word(4u * k + 2u), read_word(4u * k + 3u));
}

// A mask of the bytes of a word of the group that are in strided pixels.
fn pixel_mask(word: u32) -> u32 {
    let per_word = 4u / element_bytes;
    var mask = 0u;
    for (var i = 0u; i < per_word; i++) {
        let inside = (word * per_word + i + ahead) % target_step < channels;
        mask |= select(0u, 0xffffffffu >> (32u - 8u * element_bytes), inside) << (i * 8u * element_bytes);
    }
    return mask;
}

fn group_mask(k: u32) -> vec4<u32> {
    return vec4(pixel_mask(4u * k), pixel_mask(4u * k + 1u), pixel_mask(4u * k + 2u), pixel_mask(4u * k + 3u));
}

// The target blocks of a group.
struct Group {
    extent: Extent,   // of its row, in bytes
    first_block: u32, // block number
    block_step: u32,  // blocks from one to the next
    stop_block: u32,  // one past the last block of its row; not reached where `apart`
    phase: u32,       // bytes of its first pixel before it, where they differ from group to group
}

// A block of the group for the two that have its elements, where they are shifted: compilers do not find out in time
// that they read the same.
fn read_shared_block(k: u32) -> vec4<u32> {
    if (unaligned && k <= group_blocks) {
        return read_group_block(k);
    }
    return vec4(0u);
}

// Writes the k-th block of a group, if there is one. Where blocks are shifted, `low` and `high` are it and the next one.
fn write_group_block(group: Group, k: u32, low: vec4<u32>, high: vec4<u32>) {
    let number = group.first_block + k * group.block_step;
    if (k < group_blocks && number < group.stop_block) {
        var block = vec4(0u);
        if (unaligned) {
            block = join(low, high, group.phase);
        } else {
            block = read_group_block(k);
        }
        if (strided()) {
            var mask = group_mask(k);
            if (unaligned) {
                mask = join(mask, group_mask(k + 1u), group.phase);
            }
            mask &= mask_of(group.extent.start, group.extent.stop, number);
            block = (target_blocks[number] & ~mask) | (block & mask);
        }
        target_blocks[number] = block;
    }
}

// Reads a part of a group from byte `source` on into the window; bytes before the binding belong to no pixel.
fn read_part(part: u32, source: u32) {
    let offset = source % 16u;
    var near = block_after(source, 0u);
    for (var k = 0u; k < part_blocks; k++) {
        let far = block_after(source, k + 1u);
        let block = join(near, far, offset);
        let word = 4u * (part * part_blocks + k);
        window[word] = block.x;
        window[word + 1u] = block.y;
        window[word + 2u] = block.z;
        window[word + 3u] = block.w;
        near = far;
    }
}

@compute @workgroup_size(workgroup_size)
fn pixels(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (piece.left_over) {
        return;
    }
    let last = copy.rank - 1u;
    let before = copy.rank - select(2u, 3u, repeats > 1u);
    let place = find_place(piece.row, before);
    let gap = target_step - channels; // elements from the end of a pixel to the next
    let size_bytes = (size_of(before) * repeats * target_step - gap) * element_bytes;
    let extent = find_extent(place.target_element * element_bytes, size_bytes, 16u);
    let first_unit = select(extent.whole_unit, extent.first_unit, strided());
    let stop_unit = select(extent.stop_unit, (extent.stop + 15u) / 16u, strided());
    let first_block = first_unit + piece.number * select(group_blocks, 1u, apart);
    // Of the row, or of a plane where `apart`. The first block of a strided row may begin before it, by fewer than 16
    // pixels.
    let skipped = select(0u, 16u, strided());
    let skipped_bytes = skipped * target_step * element_bytes;
    let element = (first_block * 16u - extent.start + skipped_bytes) / element_bytes; // modulo 2^32
    let pixel = select(element / (target_step * repeats), element, apart) - skipped; // modulo 2^32
    let ahead_of_row = pixel * bitcast<u32>(pixel_step) + bitcast<u32>(lowest()); // modulo 2^32
    let first = place.source_element + ahead_of_row;
    for (var part = 0u; part < parts; part++) {
        read_part(part, (first + part * source_stride_of(last)) * element_bytes);
    }
    let plane_blocks = target_stride_of(last) * element_bytes / 16u;
    let group = Group(extent, first_block, select(1u, plane_blocks, apart), select(stop_unit, 0xffffffffu, apart),
                      element % target_step * element_bytes);
    // Calls with constants stand for a loop, which compilers may keep: then the window is in memory.
    let block_0 = read_shared_block(0u);
    let block_1 = read_shared_block(1u);
    let block_2 = read_shared_block(2u);
    let block_3 = read_shared_block(3u);
    write_group_block(group, 0u, block_0, block_1);
    write_group_block(group, 1u, block_1, block_2);
    write_group_block(group, 2u, block_2, block_3);
    write_group_block(group, 3u, block_3, read_shared_block(4u));
}
