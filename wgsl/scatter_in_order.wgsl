// scatter_in_order: scatters elements to indices that may be equal: the last of equal ones is written last.
//
//   invocation n  ->  row n, its elements in order
//
// Needs rows that share no target element, or of sub-word elements no word.

override element_bytes: u32 = 4u; // bytes per element: 1, 2, 4, 8 or 16

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn scatter_in_order(own: Invocation) {
    let row = invocation_number(own.group, own.groups, own.index);
    if (row >= copy.count) { return; }
    let last = copy.rank - 1u;
    let size = size_of(last);
    let step = moved(IndexedPosition(), last, 1u);
    let bounds = find_indexed_bounds();
    var next = find_indexed_row(row);
    for (var c = 0u; c < size; c++) {
        let reached = find_reached(next.entries, bounds);
        if (reached.inside) {
            store_element(next.target_element + reached.elements, next.source_element);
        }
        next.source_element += step.source_element;
        next.target_element += step.target_element;
        next.entries += step.entries;
    }
}

fn store_element(target_element: u32, source_element: u32) {
    if (element_bytes < 4u) {
        let word = target_element / elements_per_word();
        let bits = min(8u * element_bytes, 32u); // Tint evaluates it where elements are wider too, and refuses more
        let shift = target_element % elements_per_word() * bits;
        target_words[word] = insertBits(target_words[word], read_subword(source_element), shift, bits);
        return;
    }
    let words = element_bytes / 4u;
    for (var i = 0u; i < words; i++) {
        target_words[target_element * words + i] = source_words[source_element * words + i];
    }
}
