// rows: elements of 4 and 8 bytes, row by row of the last dimension, or, where that is short, of the last two.
//
//   invocation n = (y * groups.x + x) * workgroup_size + lane  ->  piece n % pieces of row n / pieces
//   piece, contiguous                                          ->  `each` neighbouring elements of the row
//   piece, otherwise                                           ->  every pieces-th element, `each` at most, so that
//                                                                  neighbours take neighbours
//
// Contiguous pieces are for CPUs, whose lanes wait for each other and pay for every access that may be masked: no
// invocation decides anything. The last piece of a row begins early enough to be full, and what is left of the last
// workgroup repeats the last piece, so that some elements are written twice, with the same value.

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
override element_nbytes: u32; // bytes an element: 4 or 8
override each: u32;           // elements an invocation; contiguous ones no more than a row has
override contiguous: bool;    // whether an invocation's elements are neighbours
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

// Runs of the last dimension that end before a pair's c-th element.
fn runs_before(c: u32) -> u32 {
    let last = copy.rank - 1u;
    return divide(c, copy.multipliers[last / 4u][last % 4u], copy.shifts[last / 4u][last % 4u]);
}

// An element, its second word 0 where it has none.
fn read_element(source_element: u32) -> vec2<u32> {
    if (element_nbytes == 4u) {
        return vec2(source_words[source_element], 0u);
    }
    return vec2(source_words[2u * source_element], source_words[2u * source_element + 1u]);
}

fn write_element(target_element: u32, value: vec2<u32>) {
    if (element_nbytes == 4u) {
        target_words[target_element] = value.x;
    } else {
        target_words[2u * target_element] = value.x;
        target_words[2u * target_element + 1u] = value.y;
    }
}

@compute @workgroup_size(workgroup_size)
fn rows(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let invocation = (group.y * groups.x + group.x) * workgroup_size + lane;
    var row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    if (contiguous) {
        row = min(row, copy.count - 1u);
    } else if (row >= copy.count) {
        return;
    }
    let piece = invocation - row * copy.pieces;
    let last = copy.rank - 1u;
    let run = copy.sizes[last / 4u][last % 4u];
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let target_stride = copy.target_strides[last / 4u][last % 4u];
    let before = last - u32(paired); // the other dimension of a pair
    let size = run * select(1u, copy.sizes[before / 4u][before % 4u], paired);
    let source_carry = copy.source_strides[before / 4u][before % 4u] - run * source_stride;
    let target_carry = copy.target_strides[before / 4u][before % 4u] - run * target_stride;
    let step = select(copy.pieces, 1u, contiguous);
    let first = select(piece, min(piece * each, size - each), contiguous);
    let place = find_row(row);
    var runs = 0u; // that end before the element
    var stop = run;
    if (paired) {
        runs = runs_before(first);
        stop = runs * run + run;
    }
    for (var k = 0u; k < each; k++) {
        let c = first + k * step;
        if (paired && contiguous) {
            runs += u32(c == stop);
            stop += select(0u, run, c == stop);
        } else if (paired) {
            runs = runs_before(c);
        }
        if (contiguous || c < size) {
            let source_element = place.source_element + c * source_stride;
            let target_element = place.target_element + c * target_stride;
            if (paired) {
                let value = read_element(source_element + runs * source_carry);
                write_element(target_element + runs * target_carry, value);
            } else {
                write_element(target_element, read_element(source_element));
            }
        }
    }
}
