// narrow_rows: elements of 1 and 2 bytes, row by row of the last dimension, without atomics.
//
//   invocation n = (y * groups.x + x) * workgroup_size + lane  ->  piece n % pieces of row n / pieces
//   piece, contiguous                                          ->  `each` neighbouring words of the row
//   piece, otherwise                                           ->  every pieces-th word, `each` at most, so that
//                                                                  neighbours take neighbours
//
// An invocation owns whole words of the target. A word that two rows share belongs to the first of them; bytes
// that are no output keep their value. Needs target strides in descending order, each larger than the extent of
// all dimensions after it, the last one 1, and rows of at least as many elements as a word holds.

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
    each: u32,                           // most words an invocation
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, likewise
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 1 or 2
override contiguous: bool;    // whether an invocation's words are neighbours
override source_step: i32;    // the last source stride if it is 1, -1, or, for bytes, 2 or -2; otherwise 0

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

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

fn read_element(source_element: u32) -> u32 {
    let lanes = 4u / element_nbytes;
    let bits = 8u * element_nbytes;
    return extractBits(source_words[source_element / lanes], source_element % lanes * bits, bits);
}

// Elements in the order in which the row reads them.
fn turn(word: u32) -> u32 {
    let halves = (word >> 16u) | (word << 16u);
    let bytes = ((halves >> 8u) & 0x00ff00ffu) | ((halves << 8u) & 0xff00ff00u);
    return select(word, select(halves, bytes, element_nbytes == 1u), source_step < 0);
}

// The word that begins `shift` bits, 0 to 31, into a pair of words.
fn shift_together(low: u32, high: u32, shift: u32) -> u32 {
    return select((low >> shift) | (high << ((32u - shift) % 32u)), low, shift == 0u);
}

// Every second of the 7 bytes from source_element on.
fn every_second(source_element: u32) -> u32 {
    let shift = source_element % 4u * 8u;
    let word = source_element / 4u;
    let middle = source_words[word + 1u];
    let low = shift_together(source_words[word], middle, shift);
    let high = shift_together(middle, source_words[(source_element + 6u) / 4u], shift);
    return (low & 0xffu) | ((low >> 8u) & 0xff00u) | ((high & 0xffu) << 16u) | ((high << 8u) & 0xff000000u);
}

// The word that lies `shift` bits into two neighbours, of which `far` lies further along the row.
fn join(near: u32, far: u32, shift: u32) -> u32 {
    let low = select(far, near, source_step > 0);
    let high = select(near, far, source_step > 0);
    return turn(select((low >> shift) | (high << ((32u - shift) % 32u)), far, shift == 0u));
}

// Words inside a run of neighbours, forwards or backwards, from element `lowest` on.
fn copy_neighbours(first: u32, stop: u32, step: u32, lowest: u32) {
    let lanes = 4u / element_nbytes;
    let shift = lowest % lanes * 8u * element_nbytes;
    let forwards = source_step > 0;
    var near_word = lowest / lanes + u32(!forwards && shift != 0u);
    var far_word = lowest / lanes + u32(forwards && shift != 0u);
    let ahead = select(0u - step, step, forwards);
    var word = first;
    if (contiguous) { // each far word is the next near one
        var near = source_words[near_word];
        for (; word + 3u < stop; word += 4u) {
            let far_0 = source_words[far_word];
            let far_1 = source_words[far_word + ahead];
            let far_2 = source_words[far_word + 2u * ahead];
            let far_3 = source_words[far_word + 3u * ahead];
            target_words[word] = join(near, far_0, shift);
            target_words[word + 1u] = join(far_0, far_1, shift);
            target_words[word + 2u] = join(far_1, far_2, shift);
            target_words[word + 3u] = join(far_2, far_3, shift);
            near = far_3;
            far_word += 4u * ahead;
        }
        for (; word < stop; word++) {
            let far = source_words[far_word];
            target_words[word] = join(near, far, shift);
            near = far;
            far_word += ahead;
        }
    } else {
        for (; word < stop; word += step) {
            target_words[word] = join(source_words[near_word], source_words[far_word], shift);
            near_word += ahead;
            far_word += ahead;
        }
    }
}

// The words from `first` to before `stop`, `step` apart, all inside a row; source_element is what `first` reads.
fn copy_words(first: u32, stop: u32, step: u32, source_element: u32, source_stride: u32) {
    let lanes = 4u / element_nbytes;
    let lowest = select(source_element, source_element + (lanes - 1u) * source_stride, source_step < 0);
    if (source_step == 1 || source_step == -1) {
        copy_neighbours(first, stop, step, lowest);
        return;
    }
    var element = lowest;
    for (var word = first; word < stop; word += step) {
        var value = 0u;
        if (source_step == 0) {
            for (var i = 0u; i < lanes; i++) {
                value |= read_element(element + i * source_stride) << (i * 8u * element_nbytes);
            }
        } else {
            value = turn(every_second(element));
        }
        target_words[word] = value;
        element += step * lanes * source_stride;
    }
}

// A word at an end of a row, together with what the next row has in it.
fn copy_edge(word: u32, row: u32, place: Place, size: u32, source_stride: u32) {
    let lanes = 4u / element_nbytes;
    let next = find_row(row + 1u);
    var value = target_words[word];
    for (var i = 0u; i < lanes; i++) {
        let element = word * lanes + i;
        let inside = element >= place.target_element && element < place.target_element + size;
        let follows = row + 1u < copy.count && element >= next.target_element;
        if (inside || follows) {
            let start = select(place.source_element - place.target_element * source_stride,
                               next.source_element - next.target_element * source_stride, follows);
            let bits = 8u * element_nbytes;
            value = insertBits(value, read_element(start + element * source_stride), i * bits, bits);
        }
    }
    target_words[word] = value;
}

@compute @workgroup_size(workgroup_size)
fn narrow_rows(@builtin(workgroup_id) group: vec3<u32>,
               @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) lane: u32) {
    let lanes = 4u / element_nbytes;
    let invocation = (group.y * groups.x + group.x) * workgroup_size + lane;
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    if (row >= copy.count) {
        return;
    }
    let piece = invocation - row * copy.pieces;
    let last = copy.rank - 1u;
    let size = copy.sizes[last / 4u][last % 4u];
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let place = find_row(row);
    let start = place.target_element;
    let first_word = start / lanes;
    let whole_word = (start + lanes - 1u) / lanes; // the first that is all the row's
    let stop_word = (start + size) / lanes;        // one past the last that is all the row's
    let step = select(copy.pieces, 1u, contiguous);
    let own = first_word + select(piece, piece * copy.each, contiguous);
    let first = select(own, own + step, own < whole_word);
    let stop = select(stop_word, min(own + copy.each, stop_word), contiguous);
    if (first < stop) {
        let source_element = place.source_element + (first * lanes - start) * source_stride;
        copy_words(first, stop, step, source_element, source_stride);
    }
    let taken = row > 0u && find_row(row - 1u).target_element + size > first_word * lanes;
    let head = own < whole_word && !taken;
    let ahead = stop_word - own;
    let ends = own <= stop_word && select(ahead % copy.pieces == 0u, ahead < copy.each, contiguous);
    let tail = ends && stop_word * lanes < start + size;
    var edge = select(stop_word, first_word, head);
    for (var left = u32(head) + u32(tail); left > 0u; left--) {
        copy_edge(edge, row, place, size, source_stride);
        edge = stop_word;
    }
}
