// shifted_rows: rows of neighbours that the source has beside each other, or 2 or 4 elements apart, forwards or
// backwards, of any width below 16 bytes, in blocks of 16 bytes that may begin anywhere in the source.
//
//   invocation n = (y * groups.x + x) * workgroup_size + lane  ->  piece n % pieces of row n / pieces
//   piece, contiguous                                          ->  `each` neighbouring blocks of the row
//   piece, otherwise                                           ->  every pieces-th block, `each` at most, so that
//                                                                  neighbours take neighbours
//   first and last piece                                       ->  also the blocks that hold the row's ends
//
// Contiguous pieces are for CPUs, whose lanes wait for each other and pay for every access that may be masked: blocks
// inside a row are copied without a decision. The last piece of a row begins early enough to be full, and what is
// left of the last workgroup repeats the last piece, so that some blocks are written twice, with the same value.
//
// A block that two rows share belongs to the first of them; bytes that are no output keep their value. Needs target
// strides in descending order, each larger than the reach of all dimensions after it, the last one 1, rows that hold
// `each` whole blocks, one at least, wherever they begin, and bindings of whole blocks.

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    multipliers: array<vec4<u32>, 2>,    // of each dimension's divisor, for kernels that must not divide
    shifts: array<vec4<u32>, 2>,         // bits, likewise
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // rows
    pieces: u32,                         // invocations a row, for kernels that deal rows
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, likewise
    unused: u32,                         // fills the last 16 bytes
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 1, 2, 4 or 8
override each: u32;           // whole blocks an invocation
override contiguous: bool;    // whether an invocation's blocks are neighbours
override source_step: i32;    // the last source stride: 1, 2, 4, -1, -2 or -4
override ragged: bool;        // whether some row begins or ends inside a block

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_blocks: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_blocks: array<vec4<u32>>;

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

struct Place {
    source_element: u32,
    target_element: u32,
}

// The first element of a row of the last dimension.
fn find_row(row: u32) -> Place {
    var place = Place(copy.source_offset, copy.target_offset);
    var rest = row;
    for (var d = copy.rank - 1u; d > 0u; d--) {
        let i = (d - 1u) / 4u;
        let j = (d - 1u) % 4u;
        var c = rest;
        if (d > 1u) {
            rest = divide(rest, copy.multipliers[i][j], copy.shifts[i][j]);
            c -= rest * copy.sizes[i][j];
        }
        place.source_element += c * copy.source_strides[i][j];
        place.target_element += c * copy.target_strides[i][j];
    }
    return place;
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

// Elements in the order in which the row reads them.
fn turn(block: vec4<u32>) -> vec4<u32> {
    if (source_step > 0) {
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

// The lowest source byte of a block of a row.
fn find_source(place: Place, block: u32) -> u32 {
    let distance = u32(abs(source_step));
    let ahead = (block * 16u - place.target_element * element_nbytes) * distance;
    let source = place.source_element * element_nbytes;
    return select(source - ahead - (16u - element_nbytes) * distance, source + ahead, source_step > 0);
}

// Every second element of two neighbours.
fn halve(low: vec4<u32>, high: vec4<u32>) -> vec4<u32> {
    if (element_nbytes == 8u) {
        return vec4(low.xy, high.xy);
    }
    if (element_nbytes == 4u) {
        return vec4(low.xz, high.xz);
    }
    var first = vec4(low.xz, high.xz);
    var second = vec4(low.yw, high.yw);
    if (element_nbytes == 1u) {
        first = (first & vec4(0xffu)) | ((first >> vec4(8u)) & vec4(0xff00u));
        second = (second & vec4(0xffu)) | ((second >> vec4(8u)) & vec4(0xff00u));
    }
    return (first & vec4(0xffffu)) | (second << vec4(16u));
}

// The n-th block after that of a byte. A byte before the binding has wrapped around to the end of the 2^28 blocks that
// 32 bits reach, and from there the count goes on at block 0.
fn block_after(source: u32, n: u32) -> vec4<u32> {
    return source_blocks[(source / 16u + n) & 0x0fffffffu];
}

// The block whose lowest source byte is `source`. The last load may lie beyond what the block needs, and at an end of
// a row the first one before.
fn read_block(source: u32) -> vec4<u32> {
    let distance = u32(abs(source_step));
    let offset = source % 16u;
    let block_0 = source_blocks[source / 16u];
    if (distance == 1u) {
        return turn(join(block_0, source_blocks[(source + 15u) / 16u], offset));
    }
    let block_1 = block_after(source, 1u);
    let block_2 = block_after(source, 2u);
    let pair = halve(join(block_0, block_1, offset), join(block_1, block_2, offset));
    if (distance == 2u) {
        return turn(pair);
    }
    let block_3 = block_after(source, 3u);
    let block_4 = block_after(source, 4u);
    return turn(halve(pair, halve(join(block_2, block_3, offset), join(block_3, block_4, offset))));
}

// Blocks beside each other, of neighbours. Going along the row, every source block is the far one of a target block,
// and the near one of the next.
fn copy_neighbours(first: u32, source: u32) {
    let forwards = source_step > 0;
    let offset = source % 16u;
    let near_block = source / 16u + u32(!forwards && offset != 0u);
    let far_block = source / 16u + u32(forwards && offset != 0u);
    var near = source_blocks[near_block];
    for (var k = 0u; k < each; k++) {
        let far = source_blocks[far_block + select(0u - k, k, forwards)];
        let low = select(far, near, forwards && offset != 0u);
        target_blocks[first + k] = turn(join(low, select(near, far, forwards), offset));
        near = far;
    }
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

// A block at an end of a row, together with what the next row has in it. Reads beyond a row are masked out.
fn copy_edge(block: u32, row: u32, place: Place, size_nbytes: u32) {
    let start = place.target_element * element_nbytes;
    let base = block * 16u;
    let own = mask(max(start, base) - base, min(start + size_nbytes, base + 16u) - base);
    let next = find_row(row + 1u);
    let next_start = clamp(next.target_element * element_nbytes, base, base + 16u) - base;
    let following = select(vec4(0u), mask(next_start, 16u), row + 1u < copy.count);
    let kept = target_blocks[block] & ~(own | following);
    target_blocks[block] = kept | (read_block(find_source(place, block)) & own)
        | (read_block(find_source(next, block)) & following);
}

@compute @workgroup_size(workgroup_size)
fn shifted_rows(@builtin(workgroup_id) group: vec3<u32>,
                @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) lane: u32) {
    let invocation = (group.y * groups.x + group.x) * workgroup_size + lane;
    var row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    if (contiguous) {
        row = min(row, copy.count - 1u);
    } else if (row >= copy.count) {
        return;
    }
    let piece = min(invocation - row * copy.pieces, copy.pieces - 1u);
    let last = copy.rank - 1u;
    let size_nbytes = copy.sizes[last / 4u][last % 4u] * element_nbytes;
    let place = find_row(row);
    let start = place.target_element * element_nbytes;
    let stop = start + size_nbytes;
    let whole_block = (start + 15u) / 16u; // the first that is all the row's
    let stop_block = stop / 16u;           // one past the last
    let step = select(copy.pieces, 1u, contiguous);
    let first = whole_block + select(piece, min(piece * each, stop_block - whole_block - each), contiguous);
    if (contiguous && (source_step == 1 || source_step == -1)) {
        copy_neighbours(first, find_source(place, first));
    } else {
        for (var k = 0u; k < each; k++) {
            let block = first + k * step;
            if (contiguous || block < stop_block) {
                target_blocks[block] = read_block(find_source(place, block));
            }
        }
    }
    if (ragged) {
        let first_block = start / 16u;
        let before = (find_row(row - 1u).target_element * element_nbytes) + size_nbytes;
        let taken = row > 0u && before > first_block * 16u;
        let head = piece == 0u && first_block < whole_block && !taken;
        let tail = piece + 1u == copy.pieces && stop_block * 16u < stop;
        var edge = select(stop_block, first_block, head);
        for (var left = u32(head) + u32(tail); left > 0u; left--) {
            copy_edge(edge, row, place, size_nbytes);
            edge = stop_block;
        }
    }
}
