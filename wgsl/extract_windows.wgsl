// extract_windows: many windows of one tensor, right for every case. One invocation writes the element of one index.
//
//   invocation i  ->  c, the i-th index of (count, sizes) in row-major order
//   position[d] = offset[d] + steps[d] * c[d], or from the window's end backwards where its bit of `flips` is set
//   target[...] = source[position], or the fill where a position lies outside of the input
//
// Elements of 1 and 2 bytes share their words with other invocations, or with bytes that are no output at all,
// so the target is atomic: an invocation changes the bits of its own element and no others.

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
override element_nbytes: u32; // bytes an element: 1, 2, 4, 8 or 16
override picked: bool;        // whether `picks` says which windows, and how they go
override offset_nbytes: u32;  // bytes an offset: 1, 2, 4 or 8
override offset_signed: bool; // whether offsets are signed

@group(0) @binding(0) var<uniform> copy: Windows;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> picks: array<u32>;
@group(0) @binding(4) var<storage, read> offset_words: array<u32>;

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

struct Place {
    source_element: u32,
    target_element: u32,
    inside: bool, // the input
}

fn find_element(invocation: u32) -> Place {
    let window = invocation / copy.window_size;
    var rest = invocation % copy.window_size;
    var pick = Pick(copy.first + window, copy.flips);
    if (picked) {
        pick = Pick(picks[2u * window], picks[2u * window + 1u]);
    }
    var place = Place(copy.source_offset, copy.target_offset + pick.number * copy.target_window, true);
    for (var d = 0u; d < copy.rank; d++) {
        let i = d / 4u;
        let j = d % 4u;
        let c = rest / copy.inner[i][j];
        rest %= copy.inner[i][j];
        let lowest = bitcast<i32>(copy.lowests[i][j]);
        let highest = bitcast<i32>(copy.highests[i][j]);
        let offset = bitcast<u32>(clamp(read_offset(pick.number, d), lowest, highest));
        let ahead = copy.steps[i][j] * (copy.firsts[i][j] + c);
        let backwards = ((pick.flips >> d) & 1u) == 1u;
        let position = offset + select(ahead, copy.lasts[i][j] - ahead, backwards);
        place.inside = place.inside && position < copy.extents[i][j];
        place.source_element += position * copy.source_strides[i][j];
        place.target_element += c * copy.target_strides[i][j];
    }
    return place;
}

fn copy_words(place: Place) {
    let words_per_element = element_nbytes / 4u;
    for (var i = 0u; i < words_per_element; i++) {
        var word = copy.fill[i];
        if (place.inside) {
            word = source_words[place.source_element * words_per_element + i];
        }
        atomicStore(&target_words[place.target_element * words_per_element + i], word);
    }
}

fn copy_part_of_word(place: Place) {
    let lanes = max(4u / element_nbytes, 1u); // elements a word; never 0, which compilers refuse as a divisor
    let bits = 8u * element_nbytes;
    var value = extractBits(copy.fill.x, 0u, bits);
    if (place.inside) {
        let word = source_words[place.source_element / lanes];
        value = extractBits(word, place.source_element % lanes * bits, bits);
    }
    let shift = place.target_element % lanes * bits;
    let word = &target_words[place.target_element / lanes];
    let old = extractBits(atomicLoad(word), shift, bits);
    // Nobody else changes these bits, so flipping those that differ sets them, whatever happens to the rest.
    atomicXor(word, (old ^ value) << shift);
}

@compute @workgroup_size(workgroup_size)
fn extract_windows(@builtin(workgroup_id) group: vec3<u32>,
                   @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_index) lane: u32) {
    let invocation = (group.y * groups.x + group.x) * workgroup_size + lane;
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let place = find_element(invocation);
    if (place.inside && place.source_element >= copy.segment) {
        return;
    }
    if (element_nbytes >= 4u) {
        copy_words(place);
    } else {
        copy_part_of_word(place);
    }
}
