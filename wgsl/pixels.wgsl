// pixels: rows of pixels of 1 to 4 channels of 1 and 2 bytes, of which the source has the same, in any order and
// direction, some left out: flips, BGR, RGBA to RGB, one channel of several. In groups of whole blocks of 16 bytes.
//
//   invocation n  ->  group n % pieces of row n / pieces: `group_blocks` blocks of the target, which are whole pixels
//
// A row is the last two dimensions, pixels and channels, and lies in one piece in the target, where it begins and ends with
// blocks.

override element_nbytes: u32; // bytes an element: 1 or 2
override channels: u32;       // elements a pixel: 1 to 4
override pixel_step: i32;     // elements from one pixel to the next in the source
override channel_step: i32;   // elements from one channel to the next in the source
override group_blocks: u32;   // blocks of the target that a group has, with whole pixels in it
override window_blocks: u32;  // blocks that hold what a group reads, wherever that begins in them

fn pixels_per_group() -> u32 {
    return group_blocks * 16u / (channels * element_nbytes);
}

// The lowest element that a group reads, counted from its first pixel's first channel.
fn lowest() -> i32 {
    return min(0, (i32(pixels_per_group()) - 1) * pixel_step) + min(0, (i32(channels) - 1) * channel_step);
}

// Words of what a group reads; there are never more.
var<private> window: array<u32, 64>;

// An element of the group, out of the window.
fn pixel_element(element: u32) -> u32 {
    let pixel = i32(element / channels);
    let channel = i32(element % channels);
    let place = u32(pixel * pixel_step + channel * channel_step - lowest()) * element_nbytes; // bytes
    // Not extractBits, whose own checks keep compilers from unrolling what calls this.
    return (window[place / 4u] >> (place % 4u * 8u)) & (0xffffffffu >> (32u - 8u * element_nbytes));
}

fn read_word(word: u32) -> u32 {
    let lanes = 4u / element_nbytes;
    var value = 0u;
    for (var i = 0u; i < lanes; i++) {
        value |= pixel_element(word * lanes + i) << (i * 8u * element_nbytes);
    }
    return value;
}

@compute @workgroup_size(workgroup_size)
fn pixels(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.lane), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let last = copy.rank - 1u;
    let before = copy.rank - 2u;
    let place = find_place(piece.row, before);
    let row_blocks = copy.sizes[before / 4u][before % 4u] * channels * element_nbytes / 16u;
    let first_pixel = piece.number * pixels_per_group();
    let first = place.source_element + first_pixel * bitcast<u32>(pixel_step) + bitcast<u32>(lowest());
    let source = first * element_nbytes; // byte
    let offset = source % 16u;
    var near = block_after(source, 0u); // may lie before the binding, and is then read for no pixel
    for (var k = 0u; k < window_blocks; k++) {
        let far = block_after(source, k + 1u);
        let block = join(near, far, offset);
        window[4u * k] = block.x;
        window[4u * k + 1u] = block.y;
        window[4u * k + 2u] = block.z;
        window[4u * k + 3u] = block.w;
        near = far;
    }
    let target_block = place.target_element * element_nbytes / 16u + piece.number * group_blocks;
    for (var k = 0u; k < group_blocks; k++) {
        if (piece.number * group_blocks + k < row_blocks) {
            let word = 4u * k;
            target_blocks[target_block + k] = vec4(read_word(word), read_word(word + 1u),
                                                   read_word(word + 2u), read_word(word + 3u));
        }
    }
}
