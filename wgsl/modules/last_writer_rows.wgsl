// last_writer_rows: the last-writer pass of rows: for each block of 16 bytes of the tensor, the last window that covers
// all of it; for each index, the last window that covers it with a row that covers only a part of the block.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece p       ->  blocks p, p + pieces, ... of those that the row touches, at most copy.each
//   new_winners[block or index] = the greatest number of these windows
//
// The last writer of a byte is the later of two windows: the winner of its block and the winner of its index.
// Numbers of windows start at a base (see last_writer_windows).

@group(0) @binding(2) var<storage, read_write> new_winners: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn last_writer_rows(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (is_left_over(piece, rows)) {
        return;
    }
    let row = find_tensor_row(piece.row, 16u);
    let winner = copy.winner_base + row.window;
    for (var k = 0u; k < copy.each; k++) {
        let block = row.extent.first_unit + piece.number + k * copy.pieces;
        if (block * 16u < row.extent.stop) {
            var place = copy.block_winners + block;
            var last = place;
            if (block < row.extent.whole_unit || block >= row.extent.stop_unit) {
                let start = max(row.extent.start, block * 16u);
                let stop = min(row.extent.stop, block * 16u + 16u);
                place = row.winner + divide_by(start - row.start, copy.rank - 1u);
                last = row.winner + divide_by(stop - row.start - 1u, copy.rank - 1u);
            }
            for (; place <= last; place++) {
                atomicMax(&new_winners[place], winner);
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

// A row of a window, and its byte range in the tensor.
struct TensorRow {
    window: u32,     // window index, among all windows
    winner: u32,     // position in `winners` of its first index, modulo 2^32
    source: u32,     // its lowest byte in the batch, from the start of the binding, modulo 2^32
    start: u32,      // its first byte in the tensor, possibly outside, modulo 2^32
    backwards: bool, // whether its indices are reversed
    extent: Extent,  // its bytes inside the tensor
}

// Row `number` of a dispatch, in units of `unit_bytes` bytes.
fn find_tensor_row(number: u32, unit_bytes: u32) -> TensorRow {
    let window = divide(number, copy.window_multiplier, copy.window_shift);
    let rest = number - window * copy.window_size;
    let pick = find_pick(window);
    let last = copy.rank - 1u;
    let place = find_window_place(pick, rest, last);
    let first = bitcast<u32>(find_offset(pick, last));
    let offset = bitcast<i32>(first - begin_of(last)); // relative to the indices in use
    let size = bitcast<i32>(size_of(last));
    let before = clamp(-offset, 0, size); // indices of the row before those in use
    let stop = clamp(bitcast<i32>(extent_of(last)) - offset, before, size);
    let index_bytes = tensor_stride_of(last);
    let start = place.tensor + first * index_bytes;
    let low = start + bitcast<u32>(before) * index_bytes;
    let bytes = select(0u, bitcast<u32>(stop - before) * index_bytes, place.inside);
    let source = copy.batch_offset + pick.number * copy.window_stride + place.batch;
    let extent = find_extent(select(0u, low, bytes > 0u), bytes, unit_bytes);
    let winner = place.winner + first * winner_stride_of(last);
    return TensorRow(pick.number, winner, source, start, is_backwards(pick, last), extent);
}
