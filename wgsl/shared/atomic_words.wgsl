// atomic_words: source and target as words, of which several invocations may write parts at a time.

@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;

// Change the bits of a word that are set in a mask.
fn write_bits(word: u32, value: u32, mask: u32) {
    // Nobody else changes these bits, so flipping those that differ sets them, whatever happens to the rest.
    atomicXor(&target_words[word], (atomicLoad(&target_words[word]) ^ value) & mask);
}
