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

@group(0) @binding(0) var<uniform> copy: Copy;
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
