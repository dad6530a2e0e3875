// subword_steps: copies sub-word elements, or short runs of them, to a strided target without atomics: a channel of
// pixels, every second element.
//
//   invocation n  ->  piece n (see Piece) of the words that a row touches; surplus invocations have none
//
// A row is the last two dimensions: runs of `size` contiguous elements on both sides, at a constant step in the target.
// An invocation owns whole words of the target and merges the runs into them. Bytes outside the output keep their
// value. Needs rows that share no word, and runs no longer than their step.

override element_bytes: u32 = 1u;  // bytes per element: 1 or 2
override runs_per_word: u32 = 1u;  // runs that a word overlaps, at most
override single: bool = false;     // whether a run is one element, within one word of the source

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// The runs of a row, in bytes.
struct Steps {
    target_start: u32, // offset of the first run
    target_step: u32,  // stride of runs
    source_start: u32, // offset of the first run
    source_step: u32,  // stride of runs, modulo 2^32
    run: u32,          // length of a run
    count: u32,        // number of runs
}

fn find_steps(row: u32) -> Steps {
    let d = copy.rank - 2u;
    let place = find_place(row, d);
    return Steps(place.target_element * element_bytes, target_stride_of(d) * element_bytes,
                 place.source_element * element_bytes, source_stride_of(d) * element_bytes,
                 size_of(copy.rank - 1u) * element_bytes, size_of(d));
}

// A word of the target, merged with the runs that overlap it.
fn merge_runs(target_word: u32, steps: Steps) -> u32 {
    var word = target_words[target_word];
    let base = target_word * 4u - steps.target_start; // byte of the row, modulo 2^32; -3 or more
    let ahead = divide_by(base + 2u * steps.target_step - steps.run, copy.rank - 2u);
    let at_start = steps.count == 1u || target_word * 4u < steps.target_start; // where `ahead` may have wrapped
    let first = select(ahead - 1u, 0u, at_start); // the first run that ends after its first byte, modulo 2^32
    for (var i = 0u; i < runs_per_word; i++) {
        let number = first + i;
        let start = i32(number * steps.target_step - base); // of the run, in bytes of the word
        let low = u32(max(start, 0));
        let high = u32(min(start + i32(steps.run), 4));
        let inside = number < steps.count && start < 4;
        let source = steps.source_start + number * steps.source_step - u32(start); // of the word's first byte
        var value: u32;
        if (single) {
            let byte = select(0u, source + low, inside);
            value = (source_words[byte / 4u] >> (byte % 4u * 8u)) << (low * 8u); // modulo 32 where not inside
        } else {
            value = word_at(select(0u, source, inside));
        }
        let bits = (0xffffffffu >> (32u - 8u * (high - low))) << (low * 8u); // modulo 2^32 where not inside
        let mask = select(0u, bits, inside);
        word = (word & ~mask) | (value & mask);
    }
    return word;
}

@compute @workgroup_size(workgroup_size)
fn subword_steps(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.index);
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    if (row >= copy.count) {
        return;
    }
    let piece = invocation - row * copy.pieces;
    let steps = find_steps(row);
    let first_word = steps.target_start / 4u;
    let stop = steps.target_start + (steps.count - 1u) * steps.target_step + steps.run;
    let words = (stop + 3u) / 4u - first_word;
    let first = select(piece, piece * each, contiguous);
    for (var k = 0u; k < each && first + k * unit_step() < words; k++) {
        let target_word = first_word + first + k * unit_step();
        target_words[target_word] = merge_runs(target_word, steps);
    }
}
