// pixels: rows of pixels of 1 to 4 channels of 1 or 2 bytes, with channels and pixels reordered, reversed or selected:
// flips, BGR, RGBA to RGB, one channel of several. Channels are interleaved or planar on either side; interleaved
// pixels may be repeated. Writes whole blocks of 16 bytes only; subword_ends writes the blocks that rows share.
//
//   invocation n  ->  group n % pieces of row n / pieces: `group_blocks` blocks of the target, which contain whole
//                     pixels: contiguous, or, with `apart`, one block of each channel's plane
//
// A row is the last two dimensions, pixels and channels, or the last three, with repeats between them. It is contiguous
// in the target, or in each plane of it.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2
override channels: u32 = 3u;      // elements per pixel: 1 to 4
override repeats: u32 = 1u;       // copies of each pixel; if several, all are in one group
override pixel_step: i32 = 3;     // elements between pixels in a part of the source
override channel_step: i32 = 1;   // elements between channels in the window, part after part
override group_blocks: u32 = 3u;  // target blocks per group
override parts: u32 = 1u;         // contiguous source ranges per group: one, or one per plane
override part_blocks: u32 = 4u;   // blocks that a group reads of a part, at any alignment
override apart: bool = false;     // whether the target is planar
override unaligned: bool = true;  // whether some row begins or ends inside a block, and so groups inside pixels

fn pixels_per_group() -> u32 {
    return group_blocks * 16u / (channels * repeats * element_bytes);
}

// Pixels that a group reads.
fn pixels_read() -> i32 {
    return i32(pixels_per_group() + u32(unaligned && channels > 1u));
}

// The lowest element that a group reads of a part, counted from its first pixel's first channel.
fn lowest() -> i32 {
    return min(0, (pixels_read() - 1) * pixel_step) + min(0, (i32(channels) - 1) * channel_step);
}

// The words that a group reads, part after part. The maximum is four planes of pixels at a stride of 4: 5 blocks each.
var<private> window: array<u32, 48>;

// The n-th element of the group, read from the window; arbitrary past its pixels.
fn pixel_element(n: u32) -> u32 {
    let per_block = 16u / element_bytes; // elements a block
    let pixel = min(i32(select(n / (channels * repeats), n % per_block, apart)), pixels_read() - 1);
    let channel = i32(select(n % channels, n / per_block, apart));
    let place = u32(pixel * pixel_step + channel * channel_step - lowest()) * element_bytes; // bytes
    // Not extractBits, whose range checks prevent compilers from unrolling the callers.
    return (window[place / 4u] >> (place % 4u * 8u)) & (0xffffffffu >> (32u - 8u * element_bytes));
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
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let last = copy.rank - 1u;
    let before = copy.rank - select(2u, 3u, repeats > 1u);
    let place = find_place(piece.row, before);
    let size_bytes = size_of(before) * repeats * channels * element_bytes;
    let extent = find_extent(place.target_element * element_bytes, size_bytes, 16u);
    let first_block = extent.whole_unit + piece.number * select(group_blocks, 1u, apart);
    let element = (first_block * 16u - extent.start) / element_bytes; // of the row, or of a plane where `apart`
    let pixel = select(element / (channels * repeats), element, apart);
    let first = place.source_element + pixel * bitcast<u32>(pixel_step) + bitcast<u32>(lowest());
    for (var part = 0u; part < parts; part++) {
        read_part(part, (first + part * source_stride_of(last)) * element_bytes);
    }
    let plane_blocks = target_stride_of(last) * element_bytes / 16u;
    var near = read_group_block(0u);
    for (var k = 0u; k < group_blocks; k++) {
        var block = near;
        if (unaligned || k + 1u < group_blocks) {
            near = read_group_block(k + 1u);
        }
        if (unaligned) {
            block = join(block, near, element % channels * element_bytes);
        }
        if (apart) {
            target_blocks[first_block + k * plane_blocks] = block;
        } else if (first_block + k < extent.stop_unit) {
            target_blocks[first_block + k] = block;
        }
    }
}
