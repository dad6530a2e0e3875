// words: the source as words, and its elements of 1 and 2 bytes, several of which make a word.

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// Elements a word; never 0, which compilers refuse as a divisor, though kernels of wide elements never divide by it.
fn elements_per_word() -> u32 {
    return max(4u / element_bytes, 1u);
}

fn read_subword(source_element: u32) -> u32 {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    return extractBits(source_words[source_element / per_word], source_element % per_word * bits, bits);
}

// Four bytes of two neighbouring words, from a byte of the first one on.
fn join_words(low: u32, high: u32, byte: u32) -> u32 {
    let bits = byte % 4u * 8u;
    return select((low >> bits) | (high << ((32u - bits) % 32u)), low, bits == 0u);
}

// Four bytes of the source from a byte on, of which kernels mask those that they do not mean. The number of a word
// before the binding has wrapped around to the end of the 2^30 words that 32 bits of bytes reach.
fn word_at(byte: u32) -> u32 {
    return join_words(source_words[byte / 4u], source_words[((byte + 3u) / 4u) & 0x3fffffffu], byte);
}
