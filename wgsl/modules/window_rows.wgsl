// window_rows: copies many windows of one tensor, row by row, in blocks of 16 bytes read at any byte offset.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   row r         ->  row r % window_size of window r / window_size
//   piece         ->  `each` blocks of the row, blocked or striped (see Piece)
//   first, last   ->  also the row's head and tail: their words, or of smaller elements the blocks with them
//
// A row is the last dimension in use: contiguous in the source, with one or more channels per index, or at a stride of
// 2 or 4 elements; forwards or with reversed indices.
//
// Needs target rows without gaps, at least max(each, 1) whole blocks in each row at any alignment, windows in order
// where rows share blocks, and bindings of whole blocks.
//
// Of an input beyond the largest binding, each dispatch has a part, and takes the rows that begin in its first
// `segment` bytes; the part has these rows as a whole.

override element_bytes: u32 = 4u; // bytes per element, kept in order in a reversed row: 1, 2, 4, 8 or 16
override filled: bool = true;     // whether some window extends outside of the input
override unaligned: bool = true;  // whether some row begins or ends inside a block
override distance: u32 = 1u;      // source stride of a row: 1, 2 or 4 indices
override segmented: bool = false; // whether a part of the input is bound

struct Row {
    source: u32,     // its lowest source byte, from the start of the binding, modulo 2^32
    start: u32,      // its first target byte, from the start of the binding
    backwards: bool, // whether its indices are reversed
    low: u32,        // its first byte inside the input
    high: u32,       // one past its last byte inside the input
    first: u32,      // a source byte inside the input, from which on its others are; of a row outside, any
}

fn find_row(number: u32) -> Row {
    let window = divide(number, copy.window_multiplier, copy.window_shift);
    let rest = number - window * copy.window_size;
    let pick = find_pick(window);
    let last = copy.rank - 1u;
    let start = copy.batch_offset + pick.number * copy.window_stride + rest * copy.row_bytes;
    let place = find_window_place(pick, rest, last);
    let high = select(0u, copy.row_bytes, place.inside || !filled);
    var row = Row(place.tensor, start, is_backwards(pick, last), 0u, high, copy.tensor_offset);
    let offset = find_offset(pick, last);
    let index_bytes = tensor_stride_of(last);
    let size = bitcast<i32>(size_of(last));
    let step = bitcast<i32>(distance);
    let reach = (size - 1) * step; // highest index minus lowest
    let lowest = offset + select(0, bitcast<i32>(last_of(last)) - reach, row.backwards);
    let extent = bitcast<i32>(extent_of(last));
    if (place.inside) {
        row.first = place.tensor + u32(clamp(lowest, 0, extent - 1)) * index_bytes;
    }
    row.source += bitcast<u32>(lowest) * index_bytes;
    if (filled) {
        let before = u32(clamp((step - 1 - lowest) / step, 0, size)); // indices before the input
        let after = u32(clamp((lowest + reach - extent + step) / step, 0, size));
        row.low = select(before, after, row.backwards) * index_bytes;
        row.high -= min(row.high, select(after, before, row.backwards) * index_bytes);
    }
    return row;
}

// Whether a row is in the part of the input that is bound.
fn is_bound(row: Row) -> bool {
    return !segmented || row.first < copy.segment;
}

// Reads the block at byte `position` of a strided row.
fn block_of_steps(row: Row, position: u32) -> vec4<u32> {
    let ahead = select(position, copy.row_bytes - position - 16u, row.backwards);
    let source = row.source + ahead * distance;
    let value = gather_step(source / 16u, source % 16u, distance, element_bytes);
    return select(value, turn(value, element_bytes), row.backwards);
}

// Reads the block at byte `position`, at least -15, of a row; bytes outside of the row are arbitrary.
fn row_block(row: Row, position: u32) -> vec4<u32> {
    var value = vec4(0u);
    if (distance == 1u) {
        value = block_of_row(row.source, row.backwards, position);
    } else {
        value = block_of_steps(row, position);
    }
    return with_fill(row, position, value);
}

// Replaces the bytes of a block that are outside of the input.
fn with_fill(row: Row, position: u32, block: vec4<u32>) -> vec4<u32> {
    var value = block;
    if (filled) {
        let start = clamp(bitcast<i32>(row.low - position), 0, 16);
        let stop = clamp(bitcast<i32>(row.high - position), start, 16);
        let inside = mask(bitcast<u32>(start), bitcast<u32>(stop));
        value = (value & inside) | (copy.fill & ~inside);
    }
    return value;
}

// Writes the part of a row that is in a block: words of their own, or bytes of words that no other invocation writes.
fn write_part(block: u32, extent: Extent, row: Row) {
    let value = row_block(row, block * 16u - row.start);
    let inside = mask_of(extent, block);
    if (!whole_words) {
        write_edge(block, value, inside, vec4(0u), vec4(0u));
        return;
    }
    for (var i = 0u; i < 4u; i++) {
        if (inside[i] != 0u) {
            target_blocks[block][i] = value[i];
        }
    }
}

// Writes the block with a row's tail, and the next row's bytes in it.
fn write_tail_and_next(piece: Piece, extent: Extent, row: Row) {
    let block = extent.stop_unit;
    // Of the last row modulo 2^32 and beyond the binding, then unused.
    let next_row = find_row(piece.row + 1u);
    let next = row_block(next_row, block * 16u - extent.stop);
    let shared_with_next = piece.row + 1u < copy.count * copy.window_size && is_bound(next_row);
    let following = select(vec4(0u), mask_from(extent.stop, block), shared_with_next);
    write_edge(block, row_block(row, block * 16u - row.start), mask_of(extent, block), next, following);
}

@compute @workgroup_size(workgroup_size)
fn window_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (is_left_over(piece, rows)) {
        return;
    }
    let row = find_row(piece.row);
    if (!is_bound(row)) {
        return;
    }
    let extent = find_extent(row.start, copy.row_bytes, 16u);
    let first = first_unit(piece, extent.whole_unit, extent.stop_unit);
    let position = first * 16u - row.start;
    let source = row.source + position;
    let carried = contiguous && distance == 1u && !mirrored; // whether each source block is loaded once
    var near = vec4(0u);
    if (carried) {
        near = block_after(source, 0u);
    }
    for (var k = 0u; k < each; k++) {
        let block = first + k * unit_step();
        if (carried) {
            let far = block_after(source, k + 1u);
            target_blocks[block] = with_fill(row, position + 16u * k, join(near, far, source % 16u));
            near = far;
        } else if (contiguous || block < extent.stop_unit) {
            target_blocks[block] = row_block(row, block * 16u - row.start);
        }
    }
    if (unaligned) {
        var is_first = piece.number == 0u && (whole_words || piece.row == 0u);
        if (segmented && piece.number == 0u && !is_first) {
            is_first = !is_bound(find_row(piece.row - 1u)); // else that one writes this one's head
        }
        if (is_first && extent.first_unit < extent.whole_unit) {
            write_part(extent.first_unit, extent, row);
        }
        if (piece.number + 1u == copy.pieces && extent.stop_unit * 16u < extent.stop) {
            if (whole_words) {
                write_part(extent.stop_unit, extent, row);
            } else {
                write_tail_and_next(piece, extent, row);
            }
        }
    }
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

override each: u32 = 4u;           // units per invocation

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

// The first unit of a piece of a row with units from `start` to before `stop`.
fn first_unit(piece: Piece, start: u32, stop: u32) -> u32 {
    let contiguous_unit = min(piece.number * each, stop - start - each); // modulo 2^32 of a short row, then unused
    return start + select(piece.number, contiguous_unit, contiguous);
}

// Units between consecutive units of a piece.
fn unit_step() -> u32 {
    return select(copy.pieces, 1u, contiguous);
}

// Each window has its own offsets in the tensor; in the batch, windows are consecutive. Extraction copies from the
// tensor to the batch, insertion from the batch to the tensor. A place is a byte for kernels of rows (insert_rows,
// insert_words, window_rows), an element for all others; an index counts along one dimension.
//
//   element i of a dispatch  ->  c, the i-th index of (count, sizes) in row-major order
//   index[d]                 ->  offset[d] + step * c[d], or from the window's end if bit d of `flips` is set
struct Windows {
    dimensions: array<WindowDimension, 8>, // the first `rank` of them are in use
    masks: array<vec4<u32>, 16>,           // bytes of a block that belong to each channel
    fill: vec4<u32>,                       // the value outside of the tensor, repeated
    tensor_offset: u32,                    // places, from the start of the binding, modulo 2^32
    batch_offset: u32,                     // places, from the start of the binding, modulo 2^32
    window_stride: u32,                    // places between windows in the batch, modulo 2^32
    winner_offset: u32,                    // winners, modulo 2^32
    winner_base: u32,                      // a winner is this plus the index of its window
    rank: u32,                             // dimensions in use
    count: u32,                            // windows
    first: u32,                            // index of the first window, where `picked` is false
    flips: u32,                            // bit d: dimension d is reversed, where `picked` is false
    segment: u32,                          // places of the source that are bound; what is at others is not copied
    window_size: u32,                      // elements or rows per window
    window_multiplier: u32,                // of the divisor `window_size`
    window_shift: u32,                     // bits, for the same divisor
    row_bytes: u32,                        // bytes per row
    pieces: u32,                           // invocations per row
    pieces_multiplier: u32,                // of the divisor `pieces`
    pieces_shift: u32,                     // bits, for the same divisor
    columns: u32,                          // offsets per window, of which some may be known to be 0
    elements: u32,                         // of all windows of the dispatch
    row_size: u32,                         // elements of the last two dimensions of a window
    each: u32,                             // words or blocks per invocation
    block_winners: u32,                    // winners of indices; the winners of blocks follow them
    unused_0: u32,                         // padding to 16 bytes
    unused_1: u32,                         // padding to 16 bytes
}

struct WindowDimension {
    size: u32,          // indices of a window
    first: u32,         // first index of a window, where a dispatch copies a part of each window
    step: u32,          // indices of the tensor per index of a window
    last: u32,          // extent of a window in indices of the tensor, minus one
    lowest: u32,        // lower clamp of offsets, i32
    highest: u32,       // upper clamp of offsets, i32
    wrap: u32,          // added to negative offsets: the tensor's size for indices, 0 for positions
    begin: u32,         // first index of the tensor in use
    extent: u32,        // indices of the tensor in use
    inner: u32,         // product of the sizes of later dimensions; for rows, without the last
    multiplier: u32,    // of the divisor `inner`; for rows, in the last dimension of the bytes per index
    shift: u32,         // bits, for the same divisor
    tensor_stride: u32, // places, modulo 2^32
    batch_stride: u32,  // elements, modulo 2^32
    winner_stride: u32, // winners, modulo 2^32
    unused: u32,        // padding to 16 bytes
}

override picked: bool = false;       // whether `picks` lists the windows and their reversed dimensions

override offset_bytes: u32 = 8u;     // bytes per offset: 1, 2, 4 or 8

override offset_signed: bool = true; // whether offsets are signed

@group(0) @binding(0) var<uniform> copy: Windows;

@group(0) @binding(3) var<storage, read> picks: array<u32>;

@group(0) @binding(4) var<storage, read> offset_words: array<u32>;

fn step_of(d: u32) -> u32 { return copy.dimensions[d].step; }

fn first_of(d: u32) -> u32 { return copy.dimensions[d].first; }

fn last_of(d: u32) -> u32 { return copy.dimensions[d].last; }

fn lowest_of(d: u32) -> i32 { return bitcast<i32>(copy.dimensions[d].lowest); }

fn highest_of(d: u32) -> i32 { return bitcast<i32>(copy.dimensions[d].highest); }

fn wrap_of(d: u32) -> i32 { return i32(copy.dimensions[d].wrap); }

fn begin_of(d: u32) -> u32 { return copy.dimensions[d].begin; }

fn extent_of(d: u32) -> u32 { return copy.dimensions[d].extent; }

fn inner_of(d: u32) -> u32 { return copy.dimensions[d].inner; }

fn tensor_stride_of(d: u32) -> u32 { return copy.dimensions[d].tensor_stride; }

fn batch_stride_of(d: u32) -> u32 { return copy.dimensions[d].batch_stride; }

fn winner_stride_of(d: u32) -> u32 { return copy.dimensions[d].winner_stride; }

struct Pick {
    number: u32, // window index, among all windows
    flips: u32,  // bit d: dimension d is reversed
}

// The n-th window of a dispatch.
fn find_pick(n: u32) -> Pick {
    if (picked) {
        return Pick(picks[2u * n], picks[2u * n + 1u]);
    }
    return Pick(copy.first + n, copy.flips);
}

fn is_backwards(pick: Pick, d: u32) -> bool {
    return ((pick.flips >> d) & 1u) == 1u;
}

// Reads an offset as an i32, saturated.
fn read_offset(index: u32) -> i32 {
    if (offset_bytes == 8u) {
        let low = offset_words[2u * index];
        let high = offset_words[2u * index + 1u];
        let negative = offset_signed && (high >> 31u) == 1u;
        let fits = high == select(0u, 0xffffffffu, negative) && (low >> 31u) == u32(negative);
        return select(select(0x7fffffff, -0x7fffffff - 1, negative), bitcast<i32>(low), fits);
    }
    let per_word = 4u / min(offset_bytes, 4u);
    let bits = 8u * min(offset_bytes, 4u);
    let word = offset_words[index / per_word];
    let value = extractBits(word, index % per_word * bits, bits);
    let signed_value = extractBits(bitcast<i32>(word), index % per_word * bits, bits);
    return select(bitcast<i32>(min(value, 0x7fffffffu)), signed_value, offset_signed);
}

// The offset of a window in dimension d, in indices of the tensor, clamped to the range beyond which nothing changes.
// A negative index counts once from the end of the dimension; a negative position is before its start.
fn find_offset(pick: Pick, d: u32) -> i32 {
    let offset = read_offset(pick.number * copy.columns + min(d, copy.columns - 1u)); // past the columns clamped to 0
    return clamp(offset + select(0, wrap_of(d), offset < 0), lowest_of(d), highest_of(d));
}

// The tensor's index for index c of a window in dimension d; outside of the tensor, at least its extent (unsigned).
fn find_index(pick: Pick, d: u32, c: u32) -> u32 {
    let ahead = step_of(d) * (first_of(d) + c);
    let from_start = select(ahead, last_of(d) - ahead, is_backwards(pick, d));
    return bitcast<u32>(find_offset(pick, d)) + from_start; // modulo 2^32
}

// The start of a row of a window, over the dimensions before those of the row.
struct WindowPlace {
    tensor: u32,  // places, modulo 2^32
    batch: u32,   // elements, from the first of its window
    winner: u32,  // position in `winners`
    inside: bool, // whether its indices are among those in use
    rest: u32,    // remainder of the index, in the dimensions of a row
}

// The place of row-major index `index` of a window over its first `dimensions` dimensions.
fn find_window_place(pick: Pick, index: u32, dimensions: u32) -> WindowPlace {
    var place = WindowPlace(copy.tensor_offset, 0u, copy.winner_offset, true, index);
    for (var left = dimensions; left > 0u; left--) {
        let d = dimensions - left; // as in find_element
        let c = divide_by(place.rest, d);
        place.rest -= c * inner_of(d);
        let index = find_index(pick, d, c);
        place.tensor += index * tensor_stride_of(d);
        place.batch += c * batch_stride_of(d);
        place.winner += index * winner_stride_of(d);
        place.inside = place.inside && index - begin_of(d) < extent_of(d);
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

// A mask of the bytes from `start` to before `stop`, 0 to 16, of a block.
fn mask(start: u32, stop: u32) -> vec4<u32> {
    return below(stop) & ~below(start);
}

// A mask of the bytes of a block that belong to a row.
fn mask_of(extent: Extent, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return mask(max(extent.start, base) - base, min(extent.stop, base + 16u) - base);
}

// A mask of the bytes of a block from `start` on, a byte inside, before or after the block.
fn mask_from(start: u32, block: u32) -> vec4<u32> {
    let base = block * 16u;
    return mask(clamp(start, base, base + 16u) - base, 16u);
}

// Writes a block that contains bytes of a row and of the next row; other bytes keep their value.
fn write_edge(block: u32, row: vec4<u32>, row_mask: vec4<u32>, next: vec4<u32>, next_mask: vec4<u32>) {
    let kept = target_blocks[block] & ~(row_mask | next_mask);
    target_blocks[block] = kept | (row & row_mask) | (next & next_mask);
}

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
