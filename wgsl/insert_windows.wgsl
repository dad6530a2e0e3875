// insert_windows: many windows put into one tensor, right for every case. One invocation writes one element.
//
//   invocation i  ->  an element of a window, as windows says
//   tensor[index] = batch[...], unless an index lies outside of the tensor, or a later window writes the element
//
// Elements of 1 and 2 bytes share their words with other invocations, or with bytes that no window has, so the target
// is atomic: an invocation changes the bits of its own element and no others.

override element_bytes: u32 = 4u; // bytes an element: 1, 2, 4, 8 or 16

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
    let words = element_bytes / 4u; // of an element, 0 of a narrow one
    for (var i = 0u; i < words; i++) {
        atomicStore(&target_words[element.tensor * words + i], source_words[element.batch * words + i]);
    }
}
