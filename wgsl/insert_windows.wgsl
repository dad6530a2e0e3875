// insert_windows: inserts many windows into one tensor; the general case. One invocation copies one element.
//
//   invocation i  ->  element i of the dispatch (see Element)
//   tensor[index] = batch[...], unless an index is outside of the tensor, or a later window writes the element
//
// Sub-word elements share words with other invocations or with bytes outside all windows, so the target is atomic: an
// invocation writes only the bits of its own element.

@group(0) @binding(0) var<uniform> copy: Windows;

override element_bytes: u32 = 4u; // bytes per element: 1, 2, 4, 8 or 16

@compute @workgroup_size(workgroup_size)
fn insert_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.index);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let element = find_element(invocation);
    if (!element.inside || !wins(element.winner, element.window)) {
        return;
    }
    if (element_bytes < 4u) {
        write_subword(element.tensor, read_subword(element.batch));
    }
    let words = element_bytes / 4u; // per element, 0 for sub-word elements
    for (var i = 0u; i < words; i++) {
        atomicStore(&target_words[element.tensor * words + i], source_words[element.batch * words + i]);
    }
}
