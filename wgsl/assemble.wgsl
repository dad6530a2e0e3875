// assemble: elements of 1 and 2 bytes, without atomics. An invocation owns whole words of the target.
//
//   workgroup g = y * groups.x + x  ->  its block of workgroup_size * words_each words, from that of target_offset
//   invocation                      ->  words_each words of that block, `step` apart: 1 where a thread owns a
//                                       piece of memory, workgroup_size where neighbours take neighbours
//
// A word inside one run of the innermost dimension is shifted together from the words it reads; any other is put
// together element by element. Bytes that are no output keep their value. Needs target strides in descending
// order, each larger than the extent of all dimensions after it, and the last one 1.

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
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 1 or 2
override words_each: u32;     // words an invocation
override step: u32;           // words between two of an invocation

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

// n divided by dimension d's divisor, for n < 2^31.
fn divide(n: u32, i: u32, j: u32) -> u32 {
    return (multiply_high(n, copy.multipliers[i][j]) + n) >> copy.shifts[i][j];
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
        let c = divide(rest, i, j);
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

fn reverse_elements(word: u32) -> u32 {
    let halves = (word >> 16u) | (word << 16u);
    let bytes = ((halves >> 8u) & 0x00ff00ffu) | ((halves << 8u) & 0xff00ff00u);
    return select(halves, bytes, element_nbytes == 1u);
}

// The word of `lanes` neighbours from source_element on, given the words of the first and the last of them.
fn shift_together(source_element: u32, low: u32, high: u32) -> u32 {
    let lanes = 4u / element_nbytes;
    let shift = source_element % lanes * 8u * element_nbytes;
    return select((low >> shift) | (high << ((32u - shift) % 32u)), low, shift == 0u);
}

// Whole words inside one run: words_each of them from target_word on, the first element reading source_element.
fn copy_run(target_word: u32, source_element: u32, source_stride: u32) {
    let lanes = 4u / element_nbytes;
    let bits = 8u * element_nbytes;
    if (source_stride == 1u) {
        var source_word = source_element / lanes;
        let reach = (source_element + lanes - 1u) / lanes - source_word; // words from the first to the last element
        var low = source_words[source_word];
        for (var k = 0u; k < words_each; k++) {
            let high = source_words[source_word + reach];
            target_words[target_word + k * step] = shift_together(source_element, low, high);
            source_word += step;
            if (step == 1u && reach == 1u) {
                low = high;
            } else {
                low = source_words[source_word];
            }
        }
    } else if (source_stride == 0xffffffffu) {
        for (var k = 0u; k < words_each; k++) {
            let start = source_element - k * step * lanes - (lanes - 1u);
            let low = source_words[start / lanes];
            let high = source_words[(start + lanes - 1u) / lanes];
            target_words[target_word + k * step] = reverse_elements(shift_together(start, low, high));
        }
    } else {
        for (var k = 0u; k < words_each; k++) {
            var word = 0u;
            for (var i = 0u; i < lanes; i++) {
                let element = source_element + (k * step * lanes + i) * source_stride;
                word |= read_element(element) << (i * bits);
            }
            target_words[target_word + k * step] = word;
        }
    }
}

@compute @workgroup_size(workgroup_size)
fn assemble(@builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) lane: u32) {
    let lanes = 4u / element_nbytes;
    let bits = 8u * element_nbytes;
    let block = (group.y * groups.x + group.x) * workgroup_size * words_each;
    let first = block + select(lane, lane * words_each, step == 1u);
    if (first >= copy.count) {
        return;
    }
    let last = copy.rank - 1u;
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let first_word = copy.target_offset / lanes + first;
    var run = find(first_word * lanes);
    if ((first_word + (words_each - 1u) * step + 1u) * lanes <= run.stop) {
        let start = run.source_element + (first_word * lanes - run.start) * source_stride;
        copy_run(first_word, start, source_stride);
        return;
    }
    let before = max(last, 1u) - 1u;
    let source_row = copy.source_strides[before / 4u][before % 4u];
    let target_row = copy.target_strides[before / 4u][before % 4u];
    for (var k = 0u; k < words_each && first + k * step < copy.count; k++) {
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
