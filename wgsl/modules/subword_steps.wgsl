// subword_steps: copies sub-word elements, or short runs of them, to a strided target without atomics: a channel of
// pixels, every second element.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece p, contiguous  ->  words p * each to (p + 1) * each of those that the row touches (blocked)
//   piece p, striped     ->  words p, p + pieces, ... of those, at most `each`
//
// A row is the last two dimensions: runs of `size` contiguous elements on both sides, at a constant step in the target.
// An invocation owns whole words of the target and merges the runs into them. Bytes outside the output keep their
// value. Needs rows that share no word, and runs no longer than their step.

override element_bytes: u32 = 1u;  // bytes per element: 1 or 2
override runs_per_word: u32 = 1u;  // runs that a word overlaps, at most
override single: bool = false;     // whether a run is one element, within one word of the source

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
    let step = select(copy.pieces, 1u, contiguous);
    for (var k = 0u; k < each && first + k * step < words; k++) {
        let target_word = first_word + first + k * step;
        target_words[target_word] = merge_runs(target_word, steps);
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

// The index of an invocation among all of the dispatch, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, index: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + index;
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

struct Place {
    source_element: u32, // elements, from the start of the binding
    target_element: u32, // elements, from the start of the binding
}

// The offsets of a row-major index over the first `dimensions` dimensions, index 0 in all others.
fn find_place(index: u32, dimensions: u32) -> Place {
    var place = Place(copy.source_offset, copy.target_offset);
    var rest = index;
    for (var d = dimensions; d > 0u; d--) {
        var c = rest;
        if (d > 1u) {
            rest = divide_by(rest, d - 1u);
            c -= rest * size_of(d - 1u);
        }
        place.source_element += c * source_stride_of(d - 1u);
        place.target_element += c * target_stride_of(d - 1u);
    }
    return place;
}

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// The four bytes at byte `byte` modulo 4 of two consecutive words.
fn join_words(low: u32, high: u32, byte: u32) -> u32 {
    let bits = byte % 4u * 8u;
    return select((low >> bits) | (high << ((32u - bits) % 32u)), low, bits == 0u);
}

// The four bytes of the source at a byte offset; callers mask those outside of their row. 32-bit byte offsets address
// 2^30 words: numbers of words before the binding are taken modulo 2^30.
fn word_at(byte: u32) -> u32 {
    let next = ((byte + 3u) / 4u) & 0x3fffffffu;
    return join_words(source_words[byte / 4u], source_words[next], byte); // may be beyond the binding
}
