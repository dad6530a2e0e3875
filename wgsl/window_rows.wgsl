// window_rows: many windows of one tensor, row by row, in blocks of 16 bytes from any byte on.
//
//   invocation n = (y * groups.x + x) * workgroup_size + lane  ->  piece n % pieces of row n / pieces
//   row r                                                      ->  row r % window_size of window r / window_size
//   piece, contiguous                                          ->  `each` neighbouring blocks of the row
//   piece, otherwise                                           ->  every pieces-th block, `each` at most, so that
//                                                                  neighbours take neighbours
//   first and last piece                                       ->  also the blocks that hold the row's ends
//
// A row is the last dimension in use: neighbours in the source, maybe several channels an index, forwards, or with
// the indices in reverse order. Backwards a block is put together of as many reversed ones as there are channels,
// each of them shifted so that it is right for one.
//
// Contiguous pieces are for CPUs, whose lanes wait for each other and pay for every access that may be masked: no
// invocation decides anything. The last piece of a row begins early enough to be full, and what is left of the last
// workgroup repeats the last piece, so that some blocks are written twice, with the same value.
//
// A block that two rows share belongs to the first of them; bytes that are no output keep their value. Needs a target
// whose rows follow each other without gaps, rows that hold `each` whole blocks, one at least, wherever they begin,
// windows in order where rows share blocks, and bindings of whole blocks.

struct Windows {
    sizes: array<vec4<u32>, 2>,          // indices of a window; dimension d is sizes[d / 4][d % 4]
    firsts: array<vec4<u32>, 2>,         // indices before those, where a window is dealt in parts
    steps: array<vec4<u32>, 2>,          // of the input's indices from one index of a window to the next
    lasts: array<vec4<u32>, 2>,          // extent of a window in the input's indices, less one
    lowests: array<vec4<u32>, 2>,        // least offset, i32: smaller ones are taken as it
    highests: array<vec4<u32>, 2>,       // greatest offset, i32: greater ones are taken as it
    extents: array<vec4<u32>, 2>,        // indices of the input
    inner: array<vec4<u32>, 2>,          // indices of all later dimensions together, row by row without the last
    multipliers: array<vec4<u32>, 2>,    // of the divisors `inner`
    shifts: array<vec4<u32>, 2>,         // bits, likewise
    source_strides: array<vec4<u32>, 2>, // elements, or bytes row by row, modulo 2^32
    target_strides: array<vec4<u32>, 2>, // elements
    masks: array<vec4<u32>, 16>,         // bytes of a block that belong to a channel, from the first one on
    fill: vec4<u32>,                     // what lies outside of the input, repeated
    source_offset: u32,                  // elements or bytes, from the start of the binding, modulo 2^32
    target_offset: u32,                  // likewise
    target_window: u32,                  // elements or bytes from one window to the next
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // windows
    first: u32,                          // number of the first window, where none are picked
    flips: u32,                          // bit d: dimension d goes backwards, where none are picked
    segment: u32,                        // elements of the source that are bound; others are left alone
    window_size: u32,                    // elements of a window, or its rows
    window_multiplier: u32,              // of the divisor `window_size`
    window_shift: u32,                   // bits, likewise
    row_nbytes: u32,                     // bytes a row
    pieces: u32,                         // invocations a row
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, likewise
    columns: u32,                        // offsets a window, of which some may be known to be 0
}

struct Pick {
    number: u32, // of the window
    flips: u32,  // bit d: dimension d goes backwards
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes of what keeps its order when a row goes backwards: 1, 2, 4, 8 or 16
override channels: u32;       // such elements an index, 1 to 15
override each: u32;           // whole blocks an invocation
override contiguous: bool;    // whether an invocation's blocks are neighbours
override mirrored: bool;      // whether some row goes backwards
override filled: bool;        // whether some window leaves the input
override ragged: bool;        // whether some row begins or ends inside a block
override picked: bool;        // whether `picks` says which windows, and how they go
override offset_nbytes: u32;  // bytes an offset: 1, 2, 4 or 8
override offset_signed: bool; // whether offsets are signed

@group(0) @binding(0) var<uniform> copy: Windows;
@group(0) @binding(1) var<storage, read> source_blocks: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_blocks: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> picks: array<u32>;
@group(0) @binding(4) var<storage, read> offset_words: array<u32>;

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

// An offset of a window as i32; what does not fit is taken as the nearest that does.
fn read_offset(number: u32, d: u32) -> i32 {
    let index = number * copy.columns + d;
    if (offset_nbytes == 8u) {
        let low = offset_words[2u * index];
        let high = offset_words[2u * index + 1u];
        let negative = offset_signed && (high >> 31u) == 1u;
        let fits = high == select(0u, 0xffffffffu, negative) && (low >> 31u) == u32(negative);
        return select(select(0x7fffffff, -0x7fffffff - 1, negative), bitcast<i32>(low), fits);
    }
    let lanes = 4u / min(offset_nbytes, 4u);
    let bits = 8u * min(offset_nbytes, 4u);
    let word = offset_words[index / lanes];
    let value = extractBits(word, index % lanes * bits, bits);
    let signed_value = extractBits(bitcast<i32>(word), index % lanes * bits, bits);
    return select(bitcast<i32>(min(value, 0x7fffffffu)), signed_value, offset_signed);
}

struct Row {
    source: u32,     // its lowest byte in the source
    start: u32,      // its first byte in the target
    backwards: bool,
    low: u32,        // bytes of it before those that lie inside the input
    high: u32,       // bytes to the end of those
}

fn find_row(row: u32) -> Row {
    let window = divide(row, copy.window_multiplier, copy.window_shift);
    var rest = row - window * copy.window_size;
    var pick = Pick(copy.first + window, copy.flips);
    if (picked) {
        pick = Pick(picks[2u * window], picks[2u * window + 1u]);
    }
    let last = copy.rank - 1u;
    var found = Row(copy.source_offset, copy.target_offset + pick.number * copy.target_window,
                    ((pick.flips >> last) & 1u) == 1u, 0u, copy.row_nbytes);
    found.start += rest * copy.row_nbytes;
    for (var d = 0u; d < copy.rank; d++) {
        let i = d / 4u;
        let j = d % 4u;
        let lowest = bitcast<i32>(copy.lowests[i][j]);
        let highest = bitcast<i32>(copy.highests[i][j]);
        let offset = clamp(read_offset(pick.number, d), lowest, highest);
        let extent = copy.extents[i][j];
        if (d == last) {
            found.source += bitcast<u32>(offset) * copy.source_strides[i][j];
            if (filled) {
                let size = bitcast<i32>(copy.sizes[i][j]);
                let before = u32(clamp(-offset, 0, size));
                let after = u32(clamp(offset - bitcast<i32>(extent) + size, 0, size));
                found.low = select(before, after, found.backwards) * copy.source_strides[i][j];
                let outside = select(after, before, found.backwards) * copy.source_strides[i][j];
                found.high -= min(found.high, outside);
            }
        } else {
            let c = divide(rest, copy.multipliers[i][j], copy.shifts[i][j]);
            rest -= c * copy.inner[i][j];
            let ahead = copy.steps[i][j] * c;
            let backwards = ((pick.flips >> d) & 1u) == 1u;
            let position = bitcast<u32>(offset) + select(ahead, copy.lasts[i][j] - ahead, backwards);
            found.source += position * copy.source_strides[i][j];
            if (filled && position >= extent) {
                found.high = 0u;
            }
        }
    }
    return found;
}

// The block that begins `offset` bytes, 0 to 15, into two neighbours.
fn join(low: vec4<u32>, high: vec4<u32>, offset: u32) -> vec4<u32> {
    let by_two = select(low, vec4(low.zw, high.xy), (offset & 8u) != 0u);
    let beyond = select(high.xy, high.zw, (offset & 8u) != 0u);
    let words = select(by_two, vec4(by_two.yzw, beyond.x), (offset & 4u) != 0u);
    if (element_nbytes >= 4u) {
        return words;
    }
    let next = vec4(words.yzw, select(beyond.x, beyond.y, (offset & 4u) != 0u));
    let bits = vec4(offset % 4u * 8u);
    return select((words >> bits) | (next << ((32u - bits) % 32u)), words, bits == vec4(0u));
}

// The same elements in reverse order.
fn turn(block: vec4<u32>) -> vec4<u32> {
    if (element_nbytes == 16u) {
        return block;
    }
    if (element_nbytes == 8u) {
        return block.zwxy;
    }
    if (element_nbytes == 4u) {
        return block.wzyx;
    }
    let halves = (block.wzyx >> vec4(16u)) | (block.wzyx << vec4(16u));
    let bytes = ((halves >> vec4(8u)) & vec4(0x00ff00ffu)) | ((halves << vec4(8u)) & vec4(0xff00ff00u));
    return select(halves, bytes, element_nbytes == 1u);
}

// The block whose lowest source byte is `source`.
fn read_block(source: u32) -> vec4<u32> {
    return join(source_blocks[source / 16u], source_blocks[(source + 15u) / 16u], source % 16u);
}

// The bytes `start` to before `stop`, 0 to 16, of a block.
fn mask(start: u32, stop: u32) -> vec4<u32> {
    return below(stop) & ~below(start);
}

fn below(stop: u32) -> vec4<u32> {
    let first = vec4(0u, 4u, 8u, 12u); // bytes before each word
    let count = min(max(vec4(stop), first) - first, vec4(4u));
    return select((vec4(1u) << (8u * (count % 4u))) - 1u, vec4(0xffffffffu), count == vec4(4u));
}

// The n-th block after that of a byte. A byte before the binding has wrapped around to the end of the 2^28 blocks that
// 32 bits reach, and from there the count goes on at block 0.
fn block_after(source: u32, n: u32) -> vec4<u32> {
    return source_blocks[(source / 16u + n) & 0x0fffffffu];
}

// A block of a row that may go backwards: then for each channel the reversed block that is right for it, two elements
// further along for each. All of them lie in three blocks, or four. Forwards they are the same block.
fn gather_channels(row: Row, position: u32) -> vec4<u32> {
    let group = channels * element_nbytes;
    let phase = (position + 16u * group) / element_nbytes % channels;
    let backwards = row.source + copy.row_nbytes - position - 16u - (group - element_nbytes);
    let first = select(row.source + position, backwards, row.backwards);
    let block_0 = block_after(first, 0u);
    let block_1 = block_after(first, 1u);
    var block_2 = block_1;
    var block_3 = block_1;
    if (channels > 1u) {
        block_2 = block_after(first, 2u);
    }
    if (2u * (group - element_nbytes) > 16u) {
        block_3 = block_after(first, 3u);
    }
    var value = vec4(0u);
    for (var channel = 0u; channel < channels; channel++) {
        let offset = first % 16u + select(0u, 2u * channel * element_nbytes, row.backwards);
        let low = select(select(block_0, block_1, offset >= 16u), block_2, offset >= 32u);
        let high = select(select(block_1, block_2, offset >= 16u), block_3, offset >= 32u);
        let block = join(low, high, offset % 16u);
        let mask = copy.masks[(channel + channels - phase) % channels];
        value |= select(block, turn(block), row.backwards) & mask;
    }
    return value;
}

// The block of a row whose first byte is `position`, up to 15 before its first: what is no part of the row is anything.
fn row_block(row: Row, position: u32) -> vec4<u32> {
    var value = vec4(0u);
    if (mirrored) {
        value = gather_channels(row, position);
    } else {
        value = read_block(row.source + position);
    }
    if (filled) {
        let start = clamp(bitcast<i32>(row.low - position), 0, 16);
        let stop = clamp(bitcast<i32>(row.high - position), start, 16);
        let inside = mask(bitcast<u32>(start), bitcast<u32>(stop));
        value = (value & inside) | (copy.fill & ~inside);
    }
    return value;
}

// A block at an end of a row, together with what the next row has in it.
fn copy_edge(block: u32, number: u32, row: Row) {
    let base = block * 16u;
    let stop = row.start + copy.row_nbytes;
    let own = mask(max(row.start, base) - base, min(stop, base + 16u) - base);
    let shared_with_next = stop < base + 16u && number + 1u < copy.count * copy.window_size;
    let following = select(vec4(0u), mask(clamp(stop, base, base + 16u) - base, 16u), shared_with_next);
    let kept = target_blocks[block] & ~(own | following);
    let next = row_block(find_row(number + 1u), base - stop);
    target_blocks[block] = kept | (row_block(row, base - row.start) & own) | (next & following);
}

@compute @workgroup_size(workgroup_size)
fn window_rows(@builtin(workgroup_id) group: vec3<u32>,
               @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) lane: u32) {
    let invocation = (group.y * groups.x + group.x) * workgroup_size + lane;
    let rows = copy.count * copy.window_size;
    var number = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    if (contiguous) {
        number = min(number, rows - 1u);
    } else if (number >= rows) {
        return;
    }
    let piece = min(invocation - number * copy.pieces, copy.pieces - 1u);
    let row = find_row(number);
    let stop = row.start + copy.row_nbytes;
    let whole_block = (row.start + 15u) / 16u; // the first that is all the row's
    let stop_block = stop / 16u;               // one past the last
    let step = select(copy.pieces, 1u, contiguous);
    let first = whole_block + select(piece, min(piece * each, stop_block - whole_block - each), contiguous);
    for (var k = 0u; k < each; k++) {
        let block = first + k * step;
        if (contiguous || block < stop_block) {
            target_blocks[block] = row_block(row, block * 16u - row.start);
        }
    }
    if (ragged) {
        let first_block = row.start / 16u;
        let taken = number > 0u && first_block * 16u < row.start;
        let head = piece == 0u && first_block < whole_block && !taken;
        let tail = piece + 1u == copy.pieces && stop_block * 16u < stop;
        var edge = select(stop_block, first_block, head);
        for (var left = u32(head) + u32(tail); left > 0u; left--) {
            copy_edge(edge, number, row);
            edge = stop_block;
        }
    }
}
