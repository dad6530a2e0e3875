// scatter: scatters elements of 4, 8 and 16 bytes to indices. One invocation copies up to `each` elements of a row.
//
//   invocation n  ->  the elements of piece n (see IndexedPiece)
//
// Needs distinct indices, or winners. With a mask and contiguous pieces, invocations write all of their elements, those
// with a false mask with their old value: masked accesses are slower on CPU adapters.

override element_bytes: u32 = 4u; // bytes per element: 4, 8 or 16

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;
@group(0) @binding(4) var<storage, read> winners: array<u32>; // for each element, 1 + number of its last index

@compute @workgroup_size(workgroup_size)
fn scatter(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    let words = element_bytes / 4u; // of an element
    let all = masked && contiguous;
    var element = piece.first;
    for (var k = 0u; k < each; k++) {
        let reached = find_offsets(piece, element);
        if (all || (is_one(piece, k) && is_written(element, reached))) {
            let first = (element.target_element + reached.elements) * words;
            for (var i = 0u; i < words; i++) {
                var value = source_words[element.source_element * words + i];
                if (all) {
                    value = select(target_words[first + i], value, reached.inside);
                }
                target_words[first + i] = value;
            }
        }
        element = after(element, piece.step);
    }
}
