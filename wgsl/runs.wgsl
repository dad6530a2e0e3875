// runs: elements of whole words in innermost runs of any length, without wasted invocations.
//
//   workgroup g = y * groups.x + x  ->  its block of workgroup_size * each indices, row-major
//   invocation, contiguous          ->  `each` neighbouring indices of that block
//   invocation, otherwise           ->  every workgroup_size-th, so that neighbours take neighbours
//
// An index is decoded once; from there it walks, and is decoded again only where a carry goes far.

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    multipliers: array<vec4<u32>, 2>,    // of each dimension's divisor, for kernels that must not divide
    shifts: array<vec4<u32>, 2>,         // bits, likewise
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // elements
    pieces: u32,                         // invocations a row, for kernels that deal rows
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, likewise
    unused: u32,                         // fills the last 16 bytes
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 4, 8 or 16
override each: u32;           // elements an invocation
override contiguous: bool;    // whether an invocation's indices are neighbours

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// Where an index reads and writes, and how far it may walk.
struct Place {
    source_element: u32,
    target_element: u32,
    left: u32, // indices to the end of the innermost dimension, this one counted
    rows: u32, // the same of the dimension before it
}

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

fn find(index: u32) -> Place {
    var rest = index;
    var place = Place(copy.source_offset, copy.target_offset, 1u, 1u);
    for (var d = copy.rank; d > 0u; d--) {
        let i = (d - 1u) / 4u;
        let j = (d - 1u) % 4u;
        var c = rest;
        if (d > 1u) {
            rest = divide(rest, copy.multipliers[i][j], copy.shifts[i][j]);
            c -= rest * copy.sizes[i][j];
        }
        place.source_element += c * copy.source_strides[i][j];
        place.target_element += c * copy.target_strides[i][j];
        if (d == copy.rank) {
            place.left = copy.sizes[i][j] - c;
        } else if (d + 1u == copy.rank) {
            place.rows = copy.sizes[i][j] - c;
        }
    }
    return place;
}

fn copy_element(source_element: u32, target_element: u32) {
    let words_per_element = element_nbytes / 4u;
    for (var i = 0u; i < words_per_element; i++) {
        let word = source_words[source_element * words_per_element + i];
        target_words[target_element * words_per_element + i] = word;
    }
}

@compute @workgroup_size(workgroup_size)
fn runs(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let block = (group.y * groups.x + group.x) * workgroup_size * each;
    let step = select(workgroup_size, 1u, contiguous);
    var index = block + select(lane, lane * each, contiguous);
    if (index >= copy.count) {
        return;
    }
    var place = find(index);
    let last = max(copy.rank, 1u) - 1u;
    let size = copy.sizes[last / 4u][last % 4u];
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let target_stride = copy.target_strides[last / 4u][last % 4u];
    if (place.left > (each - 1u) * step) {
        for (var k = 0u; k < each; k++) {
            let walked = k * step;
            copy_element(place.source_element + walked * source_stride,
                         place.target_element + walked * target_stride);
        }
        return;
    }
    let before = max(last, 1u) - 1u;
    let source_carry = copy.source_strides[before / 4u][before % 4u] - size * source_stride;
    let target_carry = copy.target_strides[before / 4u][before % 4u] - size * target_stride;
    for (var k = 0u; k < each && index < copy.count; k++) {
        copy_element(place.source_element, place.target_element);
        index += step;
        place.source_element += step * source_stride;
        place.target_element += step * target_stride;
        if (place.left > step) {
            place.left -= step;
        } else if (contiguous && place.rows > 1u) {
            place.source_element += source_carry;
            place.target_element += target_carry;
            place.left = size;
            place.rows -= 1u;
        } else {
            place = find(index);
        }
    }
}
