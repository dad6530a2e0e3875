// words: the source as words, and its elements of 1 and 2 bytes, several of which make a word.

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// Elements a word; never 0, which compilers refuse as a divisor, though kernels of wide elements never divide by it.
fn elements_per_word() -> u32 {
    return max(4u / element_bytes, 1u);
}

fn read_narrow(source_element: u32) -> u32 {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    return extractBits(source_words[source_element / per_word], source_element % per_word * bits, bits);
}
