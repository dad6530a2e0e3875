// subword_runs: copies sub-word elements in innermost runs of any length, without atomics.
//
//   workgroup g               ->  block g of workgroup_size * each words, counted from the word of target_offset
//   invocation i, contiguous  ->  words i * each to (i + 1) * each of that block (blocked)
//   invocation i, striped     ->  words i, i + workgroup_size, ... of that block
//
// An invocation owns whole words of the target and assembles them element by element. Bytes outside the output keep
// their value. Needs target strides in descending order, each larger than the extent of all dimensions after it, the
// last one 1.

override element_bytes: u32 = 1u;  // bytes per element: 1 or 2

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// A run of the innermost dimension; empty between runs.
struct Run {
    start: u32,          // first target element
    stop: u32,           // one past the last target element
    source_element: u32, // source element of `start`, modulo 2^32
    left: u32,           // runs to the end of the enclosing dimension, this one included
}

// The run that contains a target element, or an empty run.
fn find_run(target_element: u32) -> Run {
    if (target_element < copy.target_offset) {
        return Run(target_element, target_element, 0u, 0u);
    }
    var rest = target_element - copy.target_offset;
    var run = Run(0u, 0u, copy.source_offset, 1u);
    var inside = true;
    for (var d = 0u; d + 1u < copy.rank; d++) {
        let c = divide_by(rest, d);
        rest -= c * target_stride_of(d);
        inside = inside && c < size_of(d);
        run.source_element += c * source_stride_of(d);
        run.left = size_of(d) - c; // between runs modulo 2^32
    }
    let last = copy.rank - 1u;
    let size = size_of(last);
    run.start = target_element - rest;
    run.stop = select(run.start, run.start + size, inside && rest < size);
    return run;
}

@compute @workgroup_size(workgroup_size)
fn subword_runs(own: Invocation) {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    let step = select(workgroup_size, 1u, contiguous);
    let first = group_number(own.group, own.groups) * workgroup_size * each
        + select(own.index, own.index * each, contiguous);
    if (first >= copy.count) {
        return;
    }
    let last = copy.rank - 1u;
    let source_stride = source_stride_of(last);
    let first_word = copy.target_offset / per_word + first;
    var run = find_run(first_word * per_word);
    let before = max(last, 1u) - 1u;
    let source_row = source_stride_of(before);
    let target_row = target_stride_of(before);
    for (var k = 0u; k < each && first + k * step < copy.count; k++) {
        let target_word = first_word + k * step;
        var word = target_words[target_word];
        for (var i = 0u; i < per_word; i++) {
            let target_element = target_word * per_word + i;
            if (target_element >= run.stop) {
                let follows = run.stop > run.start && target_element == run.start + target_row;
                if (last > 0u && follows && run.left > 1u) {
                    let length = run.stop - run.start;
                    run = Run(target_element, target_element + length,
                              run.source_element + source_row, run.left - 1u);
                } else {
                    run = find_run(target_element);
                }
            }
            if (target_element < run.stop) {
                let value = read_subword(run.source_element + (target_element - run.start) * source_stride);
                word = insertBits(word, value, i * bits, bits);
            }
        }
        target_words[target_word] = word;
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

override each: u32 = 4u;           // units per invocation

override contiguous: bool = false; // blocked, not striped

struct Copy {
    dimensions: array<Dimension, 8>, // the first `rank` of them are in use
    source_offset: u32,              // elements, from the start of the binding
    target_offset: u32,              // elements, from the start of the binding
    rank: u32,                       // dimensions in use
    count: u32,                      // elements, rows, words or tiles, as the kernel's header maps them
    pieces: u32,                     // invocations per row, or tiles per tile row of a plane
    pieces_multiplier: u32,          // of the divisor `pieces`
    pieces_shift: u32,               // bits, for the same divisor
    row_tiles: u32,                  // tile rows per plane
    row_tiles_multiplier: u32,       // of the divisor `row_tiles`
    row_tiles_shift: u32,            // bits, for the same divisor
    across_shift: u32,               // 2^across_shift consecutive invocations span the columns of a tile
    ahead_columns: u32,              // columns between consecutive units of an invocation
    ahead_rows: u32,                 // rows between consecutive units of an invocation
    element_bytes: u32,              // bytes per element, for kernels without an element_bytes override
    paired: u32,                     // 1 where a row is the last two dimensions, 0 where it is the last one
    unused: u32,                     // padding to 16 bytes
}

struct Dimension {
    size: u32,          // elements
    source_stride: u32, // elements, modulo 2^32: a negative stride wraps around
    target_stride: u32, // elements
    multiplier: u32,    // of its divisor, for kernels that must not divide
    shift: u32,         // bits, for the same divisor
    unused_0: u32,      // padding to 16 bytes
    unused_1: u32,      // padding to 16 bytes
    unused_2: u32,      // padding to 16 bytes
}

@group(0) @binding(0) var<uniform> copy: Copy;

fn source_stride_of(d: u32) -> u32 { return copy.dimensions[d].source_stride; }

fn target_stride_of(d: u32) -> u32 { return copy.dimensions[d].target_stride; }

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// Elements per word; at least 1, since compilers reject division by 0 even where it never runs.
fn elements_per_word() -> u32 {
    return max(4u / element_bytes, 1u);
}

fn read_subword(source_element: u32) -> u32 {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    return extractBits(source_words[source_element / per_word], source_element % per_word * bits, bits);
}
