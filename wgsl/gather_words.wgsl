// gather_words: elements at indices, of 1 and 2 bytes, without atomics.
//
//   invocation n  ->  words n * each to (n + 1) * each of the target, from that of its first element on
//   element e     ->  the e-th of the copy, in row-major order, is the e-th of the target
//
// An invocation owns whole words and puts them together row by row. Bytes before the first element and after the last
// one keep their value. Needs a packed target. An index that is out of range reads the nearest element.

override element_bytes: u32 = 1u; // bytes an element: 1 or 2

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn gather_words(own: Invocation) {
    let per_word = elements_per_word();
    let bits = 8u * element_bytes;
    let last = copy.rank - 1u;
    let start = copy.target_offset;
    let before = start % per_word; // elements of the first word that are no output
    let first = invocation_number(own.group, own.groups, own.index) * copy.each * per_word;
    let stop = min(first + copy.each * per_word - before, copy.elements);
    var element = max(first, before) - before;
    while (element < stop) {
        let number = divide_by(element, last);
        let row = find_indexed_row(number);
        let c = element - number * size_of(last);
        let count = min(size_of(last) - c, stop - element); // elements of the row
        var reached = find_reached(row, c);
        for (var word = (start + element) / per_word; word * per_word < start + element + count; word++) {
            var value = target_words[word];
            for (var i = 0u; i < per_word; i++) {
                let ahead = word * per_word + i - start - element; // elements, modulo 2^32
                if (ahead < count) {
                    if (!by_rows) {
                        reached = find_reached(row, c + ahead);
                    }
                    let source = row.source_element + (c + ahead) * source_step_of(last) + reached.elements;
                    value = insertBits(value, read_subword(source), i * bits, bits);
                }
            }
            target_words[word] = value;
        }
        element += count;
    }
}
