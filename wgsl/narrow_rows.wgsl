// narrow_rows: elements of 1 and 2 bytes, row by row of the last dimension, or, where that is short, of the last two,
// without atomics.
//
//   invocation n = (y * groups.x + x) * workgroup_size + lane  ->  piece n % pieces of row n / pieces
//   piece, contiguous                                          ->  `each` neighbouring words of the row
//   piece, otherwise                                           ->  every pieces-th word, `each` at most, so that
//                                                                  neighbours take neighbours
//   first and last piece                                       ->  also the words that hold the row's ends
//
// Contiguous pieces are for CPUs, whose lanes wait for each other and pay for every access that may be masked: words
// inside a row are copied without a decision. The last piece of a row begins early enough to be full, and what is
// left of the last workgroup repeats the last piece, so that some words are written twice, with the same value.
//
// A word that two rows share belongs to the first of them; bytes that are no output keep their value. Needs target
// strides in descending order, each larger than the reach of all dimensions after it, the last one 1, no gaps
// inside a pair, and rows that hold `each` whole words, one at least, wherever they begin.

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
override element_nbytes: u32; // bytes an element: 1 or 2
override each: u32;           // whole words an invocation
override contiguous: bool;    // whether an invocation's words are neighbours
override paired: bool;        // whether a row is two dimensions

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

// The first element of a row.
fn find_row(row: u32) -> Place {
    var place = Place(copy.source_offset, copy.target_offset);
    var rest = row;
    for (var d = copy.rank - select(1u, 2u, paired); d > 0u; d--) {
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

// Runs of the last dimension that end before a pair's c-th element.
fn runs_before(c: u32) -> u32 {
    let last = copy.rank - 1u;
    return divide(c, copy.multipliers[last / 4u][last % 4u], copy.shifts[last / 4u][last % 4u]);
}

// What a row reads: `run` elements a stride apart, then a carry more to the next, and so on.
struct Source {
    stride: u32,
    run: u32,
    carry: u32,
}

// The source element of a row's c-th, counted from that of its first.
fn ahead(source: Source, c: u32) -> u32 {
    if (paired) {
        return c * source.stride + runs_before(c) * source.carry;
    }
    return c * source.stride;
}

// Words inside a row, put together element by element; the first one begins with the row's c-th.
fn copy_words(first: u32, stop: u32, step: u32, place: Place, source: Source, c: u32) {
    let lanes = 4u / element_nbytes;
    var left = source.run; // elements to the end of the run
    if (paired) {
        left -= c - source.run * runs_before(c);
    }
    var element = place.source_element + ahead(source, c);
    for (var k = 0u; k < each; k++) {
        let word = first + k * step;
        if (contiguous || word < stop) {
            var value = 0u;
            for (var i = 0u; i < lanes; i++) {
                if (!contiguous || !paired) {
                    element = place.source_element + ahead(source, c + k * step * lanes + i);
                }
                value |= read_element(element) << (i * 8u * element_nbytes);
                element += source.stride + select(0u, source.carry, left == 1u);
                left = select(left - 1u, source.run, left == 1u);
            }
            target_words[word] = value;
        }
    }
}

// A word at an end of a row, together with what the next row has in it.
fn copy_edge(word: u32, row: u32, place: Place, source: Source, size: u32) {
    let lanes = 4u / element_nbytes;
    let bits = 8u * element_nbytes;
    let next = find_row(row + 1u);
    var value = target_words[word];
    for (var i = 0u; i < lanes; i++) {
        let element = word * lanes + i;
        let inside = element >= place.target_element && element < place.target_element + size;
        let follows = row + 1u < copy.count && element >= next.target_element;
        if (inside || follows) {
            let start = select(place.source_element, next.source_element, follows);
            let c = element - select(place.target_element, next.target_element, follows);
            value = insertBits(value, read_element(start + ahead(source, c)), i * bits, bits);
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
    var row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    if (contiguous) {
        row = min(row, copy.count - 1u);
    } else if (row >= copy.count) {
        return;
    }
    let piece = min(invocation - row * copy.pieces, copy.pieces - 1u);
    let last = copy.rank - 1u;
    let before = last - u32(paired); // the other dimension of a pair
    let run = copy.sizes[last / 4u][last % 4u];
    let size = run * select(1u, copy.sizes[before / 4u][before % 4u], paired);
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let carry = copy.source_strides[before / 4u][before % 4u] - run * source_stride;
    let source = Source(source_stride, run, select(0u, carry, paired));
    let place = find_row(row);
    let start = place.target_element;
    let stop = start + size;
    let whole_word = (start + lanes - 1u) / lanes; // the first that is all the row's
    let stop_word = stop / lanes;                  // one past the last
    let step = select(copy.pieces, 1u, contiguous);
    let first = whole_word + select(piece, min(piece * each, stop_word - whole_word - each), contiguous);
    copy_words(first, stop_word, step, place, source, first * lanes - start);
    let first_word = start / lanes;
    let taken = row > 0u && find_row(row - 1u).target_element + size > first_word * lanes;
    let head = piece == 0u && first_word < whole_word && !taken;
    let tail = piece + 1u == copy.pieces && stop_word * lanes < stop;
    var edge = select(stop_word, first_word, head);
    for (var left = u32(head) + u32(tail); left > 0u; left--) {
        copy_edge(edge, row, place, source, size);
        edge = stop_word;
    }
}
