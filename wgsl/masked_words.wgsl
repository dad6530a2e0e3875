// masked_words: writes sub-word elements where a mask is true, without atomics.
//
//   invocation n  ->  words of piece n of the target (see Piece), counted from the word of its first element
//   element e     ->  element e of the target, written if byte e of the mask is not 0
//
// An invocation owns whole words. Bytes before the first element and after the last, and elements whose mask is false,
// keep their value. Needs one dimension, a packed mask and target, and a source that is packed or one element; where
// pieces are contiguous, at least `each` words.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(0) var<uniform> copy: Indexed;
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
        if (contiguous || (!piece.left_over && word < stop_word)) {
            let base = word * per_word;
            let head = (max(start, base) - base) * 8u * element_bytes; // bits before the first element
            let tail = (base + per_word - min(stop, base + per_word)) * 8u * element_bytes; // and after the last
            let written = true_bits(base - start) & (0xffffffffu << head) & (0xffffffffu >> tail);
            target_words[word] = (target_words[word] & ~written) | (given_word(base - start) & written);
        }
    }
}
