// window_elements: which element of which window an invocation copies, and where it lies on both sides.
//
//   invocation i  ->  c, the i-th index of (count, sizes) in row-major order
//   index[d]      ->  offset[d] + steps[d] * c[d], or from the window's end backwards where its bit of `flips` is set

struct Element {
    window: u32,  // windows before its own, of all that there are
    tensor: u32,  // elements, from the start of the binding
    batch: u32,   // elements, from the start of the binding
    claim: u32,   // claims before that of its index
    inside: bool, // whether the tensor has it, among the indices that are in use
}

fn find_element(invocation: u32) -> Element {
    let pick = find_pick(invocation / copy.window_size);
    var rest = invocation % copy.window_size;
    let batch = copy.batch_offset + pick.number * copy.window_stride;
    var found = Element(pick.number, copy.tensor_offset, batch, copy.claim_offset, true);
    for (var d = 0u; d < copy.rank; d++) {
        let i = d / 4u;
        let j = d % 4u;
        let c = rest / copy.inner[i][j];
        rest %= copy.inner[i][j];
        let index = find_index(pick, d, c);
        found.inside = found.inside && index - copy.begins[i][j] < copy.extents[i][j];
        found.tensor += index * copy.tensor_strides[i][j];
        found.batch += c * copy.batch_strides[i][j];
        found.claim += index * copy.claim_strides[i][j];
    }
    return found;
}
