// insert_windows: inserts many windows into one tensor; the general case. One invocation copies one element.
//
//   invocation i  ->  element i of the dispatch (see WindowPlace)
//   tensor[index] = batch[...], unless an index is outside of the tensor, or a later window writes the element

@group(0) @binding(0) var<uniform> copy: Windows;

override element_bytes: u32 = 4u; // bytes per element: 1, 2, 4, 8 or 16

@compute @workgroup_size(workgroup_size)
fn insert_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.index);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let element = find_element(invocation);
    if (element.inside && wins(element.winner, element.pick.number)) {
        copy_element(place_in_batch(element), element.tensor, true);
    }
}
