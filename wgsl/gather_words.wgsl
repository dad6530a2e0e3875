// gather_words: gathers sub-word elements at indices, without atomics.
//
//   invocation n  ->  words n * each to (n + 1) * each of the target, counted from the word of its first element
//   element e     ->  element e of the copy, in row-major order, is element e of the packed target
//
// An invocation owns whole words and assembles them row by row. Bytes before the first element and after the last
// keep their value. Needs a packed target. Indices are clamped to their range.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn gather_words(own: Invocation) {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    let last = copy.rank - 1u;
    let start = copy.target_offset;
    let step = moved(IndexedPosition(), last, 1u);
    let bounds = find_indexed_bounds();
    let before = start % per_word; // elements of the first word before the output
    let first = invocation_number(own.group, own.groups, own.index) * copy.each * per_word;
    let stop = min(first + copy.each * per_word - before, copy.elements);
    var element = max(first, before) - before;
    while (element < stop) {
        let number = divide_by(element, last);
        let row = find_indexed_row(number);
        let c = element - number * size_of(last);
        let count = min(size_of(last) - c, stop - element); // elements of the row
        var reached = find_reached(row.entries + c * step.entries, bounds);
        for (var word = (start + element) / per_word; word * per_word < start + element + count; word++) {
            var value = target_words[word];
            for (var i = 0u; i < per_word; i++) {
                let ahead = word * per_word + i - start - element; // elements, modulo 2^32
                if (ahead < count) {
                    if (!by_rows) {
                        reached = find_reached(row.entries + (c + ahead) * step.entries, bounds);
                    }
                    let source = row.source_element + (c + ahead) * step.source_element + reached.elements;
                    let given = insertBits(value, read_subword(source), i * bits, bits);
                    value = select(value, given, reached.copied);
                }
            }
            target_words[word] = value;
        }
        element += count;
    }
}
