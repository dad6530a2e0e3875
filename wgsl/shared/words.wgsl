// words: source and target as words, and their sub-word elements.

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

// Transposes 4 x 4 bytes: the words of four rows, from one word of each of four columns.
fn turned_bytes(words: vec4<u32>) -> vec4<u32> {
    let even = (words.xz & vec2(0x00ff00ffu)) | ((words.yw & vec2(0x00ff00ffu)) << vec2(8u));
    let odd = ((words.xz >> vec2(8u)) & vec2(0x00ff00ffu)) | (words.yw & vec2(0xff00ff00u));
    return vec4((even.x & 0xffffu) | (even.y << 16u), (odd.x & 0xffffu) | (odd.y << 16u),
                (even.x >> 16u) | (even.y & 0xffff0000u), (odd.x >> 16u) | (odd.y & 0xffff0000u));
}

// Transposes 2 x 2 halves: the words of two rows, from one word of each of two columns.
fn turned_halves(left: u32, right: u32) -> vec2<u32> {
    return vec2((left & 0xffffu) | (right << 16u), (left >> 16u) | (right & 0xffff0000u));
}

// Atomic, since words are shared with other invocations or with bytes outside of the output: each invocation writes the
// bits of its own elements alone. A kernel whose invocations own whole words declares its own.
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;

// Writes the bits of a word that are set in a mask. An XOR with the bits that differ sets them, whatever writers of
// other bits do meanwhile. If it returns other bits than were loaded, others write the same ones: then a
// compare-exchange sets them, and that of the last writer to succeed stays whole.
fn write_bits(word: u32, value: u32, mask: u32) {
    let loaded = atomicLoad(&target_words[word]);
    let change = (loaded ^ value) & mask;
    let found = atomicXor(&target_words[word], change);
    var old = found ^ change;
    var written = ((found ^ loaded) & mask) == 0u;
    while (!written) {
        let tried = atomicCompareExchangeWeak(&target_words[word], old, (old & ~mask) | (value & mask));
        old = tried.old_value;
        written = tried.exchanged;
    }
}

fn write_subword(target_element: u32, value: u32) {
    let bits = 8u * element_bytes;
    let shift = target_element % elements_per_word() * bits;
    let mask = extractBits(0xffffffffu, 0u, bits);
    write_bits(target_element / elements_per_word(), value << shift, mask << shift);
}

// A mask of the bytes before `stop` of a word.
fn below_byte(stop: u32) -> u32 {
    return select((1u << (stop * 8u % 32u)) - 1u, 0xffffffffu, stop >= 4u);
}
