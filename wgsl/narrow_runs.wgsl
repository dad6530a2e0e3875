// narrow_runs: elements of 1 and 2 bytes in innermost runs of any length, without atomics.
//
//   workgroup g = y * groups.x + x  ->  its block of workgroup_size * each words, from that of target_offset
//   invocation, contiguous          ->  `each` neighbouring words of that block
//   invocation, otherwise           ->  every workgroup_size-th, so that neighbours take neighbours
//
// An invocation owns whole words of the target and puts them together element by element. Bytes that are no output
// keep their value. Needs target strides in descending order, each larger than the reach of all dimensions after
// it, and the last one 1.

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    multipliers: array<vec4<u32>, 2>,    // of each dimension's divisor, for kernels that must not divide
    shifts: array<vec4<u32>, 2>,         // bits, likewise
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // words
    pieces: u32,                         // invocations a row, for kernels that deal rows
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, likewise
    unused: u32,                         // fills the last 16 bytes
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 1 or 2
override each: u32;           // words an invocation
override contiguous: bool;    // whether an invocation's words are neighbours

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// A run of the innermost dimension, in target elements; empty where none is.
struct Run {
    start: u32,
    stop: u32,
    source_element: u32, // what `start` reads
    left: u32,           // runs to the end of the dimension before the innermost, this one counted
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

fn find(target_element: u32) -> Run {
    if (target_element < copy.target_offset) {
        return Run(target_element, target_element, 0u, 0u);
    }
    var rest = target_element - copy.target_offset;
    var run = Run(0u, 0u, copy.source_offset, 1u);
    var inside = true;
    for (var d = 0u; d + 1u < copy.rank; d++) {
        let i = d / 4u;
        let j = d % 4u;
        let c = divide(rest, copy.multipliers[i][j], copy.shifts[i][j]);
        rest -= c * copy.target_strides[i][j];
        inside = inside && c < copy.sizes[i][j];
        run.source_element += c * copy.source_strides[i][j];
        run.left = copy.sizes[i][j] - c;
    }
    let last = copy.rank - 1u;
    let size = copy.sizes[last / 4u][last % 4u];
    run.start = target_element - rest;
    run.stop = select(run.start, run.start + size, inside && rest < size);
    return run;
}

fn read_element(source_element: u32) -> u32 {
    let lanes = 4u / element_nbytes;
    let bits = 8u * element_nbytes;
    return extractBits(source_words[source_element / lanes], source_element % lanes * bits, bits);
}

@compute @workgroup_size(workgroup_size)
fn narrow_runs(@builtin(workgroup_id) group: vec3<u32>,
               @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) lane: u32) {
    let lanes = 4u / element_nbytes;
    let bits = 8u * element_nbytes;
    let block = (group.y * groups.x + group.x) * workgroup_size * each;
    let step = select(workgroup_size, 1u, contiguous);
    let first = block + select(lane, lane * each, contiguous);
    if (first >= copy.count) {
        return;
    }
    let last = copy.rank - 1u;
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let first_word = copy.target_offset / lanes + first;
    var run = find(first_word * lanes);
    let before = max(last, 1u) - 1u;
    let source_row = copy.source_strides[before / 4u][before % 4u];
    let target_row = copy.target_strides[before / 4u][before % 4u];
    for (var k = 0u; k < each && first + k * step < copy.count; k++) {
        let target_word = first_word + k * step;
        var word = target_words[target_word];
        for (var i = 0u; i < lanes; i++) {
            let target_element = target_word * lanes + i;
            if (target_element >= run.stop) {
                let follows = run.stop > run.start && target_element == run.start + target_row;
                if (last > 0u && follows && run.left > 1u) {
                    let length = run.stop - run.start;
                    run = Run(target_element, target_element + length,
                              run.source_element + source_row, run.left - 1u);
                } else {
                    run = find(target_element);
                }
            }
            if (target_element < run.stop) {
                let value = read_element(run.source_element + (target_element - run.start) * source_stride);
                word = insertBits(word, value, i * bits, bits);
            }
        }
        target_words[target_word] = word;
    }
}
