// masked_words: writes sub-word elements where a mask is true, without atomics.
//
//   invocation n  ->  piece n of the words of the target, counted from the word of its first element
//   piece         ->  `each` words, blocked or striped (see Piece)
//   element e     ->  element e of the target, written if byte e of the mask is not 0
//
// An invocation owns whole words. Bytes before the first element and after the last, and elements whose mask is false,
// keep their value. Needs one dimension, a packed mask and target, and a source that is packed or one element; where
// pieces are contiguous, at least `each` words.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// A mask of the bits of a word whose elements, the first of them element `ahead`, are true in the mask.
fn true_bits(ahead: u32) -> u32 {
    let byte = copy.table_offsets.x + ahead;
    let next = ((byte + 3u) / 4u) & 0x3fffffffu;
    let four = join_words(index_units[byte / 4u], index_units[next], byte); // may be beyond the binding
    let ones = ((((four & 0x7f7f7f7fu) + 0x7f7f7f7fu) | four) >> 7u) & 0x01010101u; // bit 0 of each byte that is not 0
    if (element_bytes == 1u) {
        return ones * 0xffu;
    }
    return ((ones & 1u) | ((ones & 0x100u) << 8u)) * 0xffffu;
}

// The word of the source that contains the elements from element `ahead` on.
fn given_word(ahead: u32) -> u32 {
    if (copy.dimensions[0].source_stride == 0u) {
        return read_subword(copy.source_offset) * select(0x10001u, 0x1010101u, element_bytes == 1u);
    }
    return word_at((copy.source_offset + ahead) * element_bytes);
}

@compute @workgroup_size(workgroup_size)
fn masked_words(own: Invocation) {
    let per_word = elements_per_word();
    let start = copy.target_offset;
    let stop = start + copy.elements;
    let stop_word = (stop + per_word - 1u) / per_word;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), 1u);
    let first = first_unit(piece, start / per_word, stop_word);
    for (var k = 0u; k < each; k++) {
        let word = first + k * unit_step();
        if (contiguous || (!is_left_over(piece, 1u) && word < stop_word)) {
            let base = word * per_word;
            let head = (max(start, base) - base) * 8u * element_bytes; // bits before the first element
            let tail = (base + per_word - min(stop, base + per_word)) * 8u * element_bytes; // and after the last
            let written = true_bits(base - start) & (0xffffffffu << head) & (0xffffffffu >> tail);
            target_words[word] = (target_words[word] & ~written) | (given_word(base - start) & written);
        }
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

override each: u32 = 4u;           // units per invocation

override contiguous: bool = false; // blocked, not striped

// The units of a row that an invocation copies: elements, words or blocks of 16 bytes, as the kernel says.
//
//   invocation n         ->  piece n % pieces of row n / pieces
//   piece p, contiguous  ->  units p * each to (p + 1) * each of the row (blocked)
//   piece p, striped     ->  units p, p + pieces, ..., at most `each`: consecutive invocations access consecutive units
//
// Contiguous pieces are for CPU adapters, whose invocations run in SIMD lanes and pay for each masked access: all
// accesses are unconditional.
// Repeats where `contiguous`: the last piece of a row is moved back until it is full, surplus invocations take it again
struct Piece {
    row: u32,    // row index
    number: u32, // piece index within the row
}

fn find_piece(invocation: u32, rows: u32) -> Piece {
    let row = divide(invocation, copy.pieces_multiplier, copy.pieces_shift);
    let taken = select(row, min(row, rows - 1u), contiguous);
    return Piece(taken, min(invocation - taken * copy.pieces, copy.pieces - 1u));
}

// Whether an invocation is surplus; never where pieces are contiguous.
fn is_left_over(piece: Piece, rows: u32) -> bool {
    return !contiguous && piece.row >= rows;
}

// The first unit of a piece of a row with units from `start` to before `stop`.
fn first_unit(piece: Piece, start: u32, stop: u32) -> u32 {
    let contiguous_unit = min(piece.number * each, stop - start - each); // modulo 2^32 of a short row, then unused
    return start + select(piece.number, contiguous_unit, contiguous);
}

// Units between consecutive units of a piece.
fn unit_step() -> u32 {
    return select(copy.pieces, 1u, contiguous);
}

//   element c, an index of the sizes  ->  source_offset + dot(c, source strides), target_offset + dot(c, target strides)
//   table t                           ->  index i: entry table_offsets[t] + dot(c, table_strides[t] of the dimensions)
//
// Each table adds i * steps[t] elements to the offset on the indexed side: the source of a gather, the target of a
// scatter. A negative index counts once from the end of its dimension. True elements of a mask are in range.
struct Indexed {
    dimensions: array<IndexedDimension, 8>, // the first `rank` of them are in use
    table_offsets: vec4<u32>,               // indices, from the start of the binding
    extents: vec4<u32>,                     // size of the dimension that a table indexes
    wraps: vec4<u32>,                       // added to negative indices: the extent, or 0 where they are out of range
    steps: vec4<u32>,                       // elements per increment of the index, modulo 2^32
    winner_steps: vec4<u32>,                // winners per increment of the index
    firsts: vec4<u32>,                      // with `ranged`, the first index that the dispatch copies
    stops: vec4<u32>,                       // with `ranged`, one past the last index that the dispatch copies
    source_offset: u32,                     // elements, from the start of the binding, modulo 2^32
    target_offset: u32,                     // elements, from the start of the binding, modulo 2^32
    rank: u32,                              // dimensions in use, at least one
    count: u32,                             // rows: indices of all dimensions but the last
    elements: u32,                          // of all rows
    each: u32,                              // words per invocation
    pieces: u32,                            // invocations per row
    pieces_multiplier: u32,                 // of the divisor `pieces`
    pieces_shift: u32,                      // bits, for the same divisor
    rows: u32,                              // rows of a group, with `down`
    rows_multiplier: u32,                   // of the divisor `rows`
    rows_shift: u32,                        // bits, for the same divisor
}

struct IndexedDimension {
    size: u32,                // elements
    multiplier: u32,          // of the divisor `size`
    shift: u32,               // bits, for the same divisor
    source_stride: u32,       // elements, modulo 2^32
    target_stride: u32,       // elements, modulo 2^32
    winner_stride: u32,       // winners, where an element may be written twice
    number_stride: u32,       // index numbers, where an element may be written twice
    unused: u32,              // padding to 16 bytes
    table_strides: vec4<u32>, // entries of the index array of each table
}

@group(0) @binding(0) var<uniform> copy: Indexed;

// The words of an index that are loaded at once: both of an index of 8 bytes, for which modules declare vec2<u32>.
alias IndexUnit = u32;

@group(0) @binding(3) var<storage, read> index_units: array<IndexUnit>;

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
