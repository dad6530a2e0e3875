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
    batch_stride: u32,  // places, modulo 2^32
    winner_stride: u32, // winners, modulo 2^32
    unused: u32,        // padding to 16 bytes
}

override picked: bool = false;       // whether `picks` lists the windows and their reversed dimensions
override offset_bytes: u32 = 8u;     // bytes per offset: 1, 2, 4 or 8
override offset_signed: bool = true; // whether offsets are signed

@group(0) @binding(3) var<storage, read> picks: array<u32>;
@group(0) @binding(4) var<storage, read> offset_words: array<u32>;

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
    let wrapped = offset + select(0, bitcast<i32>(copy.dimensions[d].wrap), offset < 0);
    return clamp(wrapped, bitcast<i32>(copy.dimensions[d].lowest), bitcast<i32>(copy.dimensions[d].highest));
}

// The tensor's index for index c of a window in dimension d; outside of the tensor, at least its extent (unsigned).
fn find_index(pick: Pick, d: u32, c: u32) -> u32 {
    let ahead = copy.dimensions[d].step * (copy.dimensions[d].first + c);
    let from_start = select(ahead, copy.dimensions[d].last - ahead, is_backwards(pick, d));
    return bitcast<u32>(find_offset(pick, d)) + from_start; // modulo 2^32
}

// The place of an element of a dispatch, or of the start of a row, over the dimensions before those of the row.
struct WindowPlace {
    pick: Pick,   // its window
    tensor: u32,  // places, from the start of the binding, modulo 2^32
    batch: u32,   // places, from the first of its window, modulo 2^32
    winner: u32,  // position in `winners`
    inside: bool, // whether its indices are among those in use
    rest: u32,    // remainder of its number, in the dimensions that follow
}

fn start_of_window(n: u32, rest: u32) -> WindowPlace {
    return WindowPlace(find_pick(n), copy.tensor_offset, 0u, copy.winner_offset, true, rest);
}

// A place in the batch, from the start of the binding. Added last: lavapipe inserts rows faster by a tenth.
fn place_in_batch(place: WindowPlace) -> u32 {
    return copy.batch_offset + place.pick.number * copy.window_stride + place.batch;
}

// The place that is c indices further along dimension d.
fn along(start: WindowPlace, d: u32, c: u32) -> WindowPlace {
    var place = start;
    let index = find_index(place.pick, d, c);
    place.tensor += index * copy.dimensions[d].tensor_stride;
    place.batch += c * copy.dimensions[d].batch_stride;
    place.winner += index * copy.dimensions[d].winner_stride;
    place.inside = place.inside && index - copy.dimensions[d].begin < copy.dimensions[d].extent;
    place.rest -= c * copy.dimensions[d].inner;
    return place;
}

// The place of an element. SwiftShader divides faster than it multiplies twice.
fn find_element(number: u32) -> WindowPlace {
    var place = start_of_window(number / copy.window_size, number % copy.window_size);
    for (var left = copy.rank; left > 0u; left--) {
        let d = copy.rank - left; // Mesa would unroll a loop over d eight times, the size of the array
        place = along(place, d, place.rest / copy.dimensions[d].inner);
    }
    return place;
}

// The place of a row, or of what has the indices of the first `dimensions` dimensions.
fn find_window_place(number: u32, dimensions: u32) -> WindowPlace {
    let window = divide(number, copy.window_multiplier, copy.window_shift);
    var place = start_of_window(window, number - window * copy.window_size);
    for (var left = dimensions; left > 0u; left--) {
        let d = dimensions - left; // as in find_element
        place = along(place, d, divide_by(place.rest, d));
    }
    return place;
}

// Copies an element, or writes the fill in its place where it is outside of the tensor.
fn copy_element(source_element: u32, target_element: u32, inside: bool) {
    let fill = copy.fill;
    if (element_bytes < 4u) {
        var value = fill.x;
        if (inside) {
            value = read_subword(source_element);
        }
        write_subword(target_element, value);
    }
    let words = element_bytes / 4u; // per element, 0 for sub-word elements
    for (var i = 0u; i < words; i++) {
        var word = fill[i];
        if (inside) {
            word = source_words[source_element * words + i];
        }
        atomicStore(&target_words[target_element * words + i], word);
    }
}
