// extract_windows: copies many windows of one tensor; the general case. One invocation copies one element.
//
//   invocation i  ->  element i of the dispatch (see WindowPlace)
//   batch[...] = tensor[index], or the fill where an index is outside of the tensor

@group(0) @binding(0) var<uniform> copy: Windows;

override element_bytes: u32 = 4u; // bytes per element: 1, 2, 4, 8 or 16

@compute @workgroup_size(workgroup_size)
fn extract_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.index);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let element = find_element(invocation);
    if (!element.inside || element.tensor < copy.segment) {
        copy_element(element.tensor, place_in_batch(element), element.inside);
    }
}
