// atomic_words: the target as atomic words; several invocations may write disjoint bits of one word.

@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;

// Writes the bits of a word that are set in a mask.
fn write_bits(word: u32, value: u32, mask: u32) {
    // No other invocation writes these bits, so an XOR with the differing ones sets them under any interleaving.
    atomicXor(&target_words[word], (atomicLoad(&target_words[word]) ^ value) & mask);
}

fn write_subword(target_element: u32, value: u32) {
    let bits = 8u * element_bytes;
    let shift = target_element % elements_per_word() * bits;
    let mask = extractBits(0xffffffffu, 0u, bits);
    write_bits(target_element / elements_per_word(), value << shift, mask << shift);
}
