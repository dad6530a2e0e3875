// extract_windows: copies many windows of one tensor; the general case. One invocation copies one element.
//
//   invocation i  ->  element i of the dispatch (see Element)
//   batch[...] = tensor[index], or the fill where an index is outside of the tensor
//
// Sub-word elements share words with other invocations or with bytes outside the output, so the target is atomic: an
// invocation writes only the bits of its own element.

@group(0) @binding(0) var<uniform> copy: Windows;

override element_bytes: u32 = 4u; // bytes per element: 1, 2, 4, 8 or 16

fn copy_wide(element: Element) {
    let words = element_bytes / 4u; // of an element
    let fill = copy.fill;
    for (var i = 0u; i < words; i++) {
        var word = fill[i];
        if (element.inside) {
            word = source_words[element.tensor * words + i];
        }
        atomicStore(&target_words[element.batch * words + i], word);
    }
}

fn copy_subword(element: Element) {
    var value = copy.fill.x;
    if (element.inside) {
        value = read_subword(element.tensor);
    }
    write_subword(element.batch, value);
}

@compute @workgroup_size(workgroup_size)
fn extract_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.index);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let element = find_element(invocation);
    if (element.inside && element.tensor >= copy.segment) {
        return;
    }
    if (element_bytes >= 4u) {
        copy_wide(element);
    } else {
        copy_subword(element);
    }
}
