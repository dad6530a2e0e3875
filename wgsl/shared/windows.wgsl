// windows: the parameters of one dispatch that copies many windows of one tensor, and the position of each window.

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
    let word = offset_words[index / max(4u / offset_bytes, 1u)];
    let value = extended(word, index, offset_bytes, offset_signed);
    return bitcast<i32>(select(min(value, 0x7fffffffu), value, offset_signed));
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

struct Element {
    window: u32,  // window index, among all windows
    tensor: u32,  // elements, from the start of the binding
    batch: u32,   // elements, from the start of the binding
    winner: u32,  // position in `winners`
    inside: bool, // whether its indices are among those in use
}

fn find_element(invocation: u32) -> Element {
    let pick = find_pick(invocation / copy.window_size);
    var rest = invocation % copy.window_size;
    let batch = copy.batch_offset + pick.number * copy.window_stride;
    var found = Element(pick.number, copy.tensor_offset, batch, copy.winner_offset, true);
    for (var left = copy.rank; left > 0u; left--) {
        let d = copy.rank - left; // Mesa would unroll a loop over d eight times, the size of the array
        let c = rest / inner_of(d);
        rest %= inner_of(d);
        let index = find_index(pick, d, c);
        found.inside = found.inside && index - begin_of(d) < extent_of(d);
        found.tensor += index * tensor_stride_of(d);
        found.batch += c * batch_stride_of(d);
        found.winner += index * winner_stride_of(d);
    }
    return found;
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
