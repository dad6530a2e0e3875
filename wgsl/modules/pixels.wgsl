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

fn pixels_per_group() -> u32 {
    return group_blocks * 16u / (target_step * repeats * element_bytes);
}

fn strided() -> bool {
    return target_step > channels;
}

// Pixels that a group reads.
fn pixels_read() -> i32 {
    return i32(pixels_per_group() + u32((unaligned && target_step > 1u) || ahead > 0u));
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
            mask &= mask_of(group.extent, number);
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
    if (is_left_over(piece, copy.count)) {
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

// Entry points pass its fields, not the struct: naga 29 provides num_workgroups on D3D12 in entry points only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,     // workgroup index, in each dimension of the grid
    @builtin(num_workgroups) groups: vec3<u32>,  // workgroups, in each dimension of the grid
    @builtin(local_invocation_index) index: u32, // index within the workgroup
}

override workgroup_size: u32 = 64u; // invocations

// The row-major index of a workgroup in the grid.
fn group_number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// The index of an invocation among all of the dispatch, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, index: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + index;
}

fn size_of(d: u32) -> u32 { return copy.dimensions[d].size; }

// The upper half of the 64-bit product.
fn multiply_high(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let carry = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (carry >> 16u);
}

// n divided by a divisor, for n < 2^31.
fn divide(n: u32, multiplier: u32, shift: u32) -> u32 {
    return (multiply_high(n, multiplier) + n) >> shift;
}

// n divided by the divisor of dimension d.
fn divide_by(n: u32, d: u32) -> u32 {
    return divide(n, copy.dimensions[d].multiplier, copy.dimensions[d].shift);
}

// The target range of a row, in elements or bytes as the kernel defines, and the units that it covers.
struct Extent {
    start: u32,      // elements or bytes
    stop: u32,       // elements or bytes, exclusive
    first_unit: u32, // the unit that contains `start`
    whole_unit: u32, // the first unit that is wholly inside the row
    stop_unit: u32,  // one past the last unit that is wholly inside the row
}

fn find_extent(start: u32, size: u32, places_per_unit: u32) -> Extent {
    let stop = start + size;
    let whole_unit = (start + places_per_unit - 1u) / places_per_unit;
    return Extent(start, stop, start / places_per_unit, whole_unit, stop / places_per_unit);
}

override contiguous: bool = false; // blocked, not striped

// The units of a row that an invocation copies: elements, words or blocks of 16 bytes, as the kernel says.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece p, contiguous  ->  units p * each to (p + 1) * each of the row (blocked)
//   piece p, striped     ->  units p, p + pieces, ..., at most `each`: consecutive invocations access consecutive units
//
// Contiguous pieces are for CPU adapters, whose invocations run in SIMD lanes and pay for each masked access: all
// accesses are unconditional.
// Repeats where `contiguous`: the last piece of a row is moved back until it is full, surplus invocations take it again
struct Piece {
    row: u32,    // row index
    number: u32, // piece index within the row
}

fn find_piece(invocation: u32, rows: u32) -> Piece {
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    let taken = select(row, min(row, rows - 1u), contiguous);
    return Piece(taken, min(invocation - taken * copy.pieces, copy.pieces - 1u));
}

// Whether an invocation is surplus; never where pieces are contiguous.
fn is_left_over(piece: Piece, rows: u32) -> bool {
    return !contiguous && piece.row >= rows;
}

struct Copy {
    dimensions: array<Dimension, 8>, // the first `rank` of them are in use
    source_offset: u32,              // elements, from the start of the binding
    target_offset: u32,              // elements, from the start of the binding
    rank: u32,                       // dimensions in use
    count: u32,                      // elements, rows, words or tiles, as the kernel's header maps them
    pieces: u32,                     // invocations per row, or tiles per tile row of a plane
    pieces_multiplier: u32,          // of the divisor `pieces`
    pieces_shift: u32,               // bits, for the same divisor
    row_tiles: u32,                  // tile rows per plane
    row_tiles_multiplier: u32,       // of the divisor `row_tiles`
    row_tiles_shift: u32,            // bits, for the same divisor
    across_shift: u32,               // 2^across_shift consecutive invocations span the columns of a tile
    ahead_columns: u32,              // columns between consecutive units of an invocation
    ahead_rows: u32,                 // rows between consecutive units of an invocation
    element_bytes: u32,              // bytes per element, for kernels without an element_bytes override
    paired: u32,                     // 1 where a row is the last two dimensions, 0 where it is the last one
    unused: u32,                     // padding to 16 bytes
}

struct Dimension {
    size: u32,          // elements
    source_stride: u32, // elements, modulo 2^32: a negative stride wraps around
    target_stride: u32, // elements
    multiplier: u32,    // of its divisor, for kernels that must not divide
    shift: u32,         // bits, for the same divisor
    unused_0: u32,      // padding to 16 bytes
    unused_1: u32,      // padding to 16 bytes
    unused_2: u32,      // padding to 16 bytes
}

@group(0) @binding(0) var<uniform> copy: Copy;

fn source_stride_of(d: u32) -> u32 { return copy.dimensions[d].source_stride; }

fn target_stride_of(d: u32) -> u32 { return copy.dimensions[d].target_stride; }

struct Place {
    source_element: u32, // elements, from the start of the binding
    target_element: u32, // elements, from the start of the binding
}

// The offsets of a row-major index over the first `dimensions` dimensions, index 0 in all others.
fn find_place(index: u32, dimensions: u32) -> Place {
    var place = Place(copy.source_offset, copy.target_offset);
    var rest = index;
    for (var d = dimensions; d > 0u; d--) {
        var c = rest;
        if (d > 1u) {
            rest = divide_by(rest, d - 1u);
            c -= rest * size_of(d - 1u);
        }
        place.source_element += c * source_stride_of(d - 1u);
        place.target_element += c * target_stride_of(d - 1u);
    }
    return place;
}

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

// A mask of the bytes before `stop`, 0 to 16, of a block.
fn below(stop: u32) -> vec4<u32> {
    let first = vec4(0u, 4u, 8u, 12u); // bytes before each word
    let count = min(max(vec4(stop), first) - first, vec4(4u));
    return select((vec4(1u) << (8u * (count % 4u))) - 1u, vec4(0xffffffffu), count == vec4(4u));
}

// A mask of the bytes from `start` to before `stop`, 0 to 16, of a block.
fn mask(start: u32, stop: u32) -> vec4<u32> {
    return below(stop) & ~below(start);
}

// A mask of the bytes of a block that belong to a row.
fn mask_of(extent: Extent, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return mask(max(extent.start, base) - base, min(extent.stop, base + 16u) - base);
}
