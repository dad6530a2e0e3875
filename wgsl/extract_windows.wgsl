// extract_windows: many windows of one tensor, right for every case. One invocation writes the element of one index.
//
//   invocation i  ->  c, the i-th index of (count, sizes) in row-major order
//   index[d] = offset[d] + steps[d] * c[d], or from the window's end backwards where its bit of `flips` is set
//   target[...] = source[index], or the fill where an index lies outside of the input
//
// Elements of 1 and 2 bytes share their words with other invocations, or with bytes that are no output at all,
// so the target is atomic: an invocation changes the bits of its own element and no others.

override element_nbytes: u32; // bytes an element: 1, 2, 4, 8 or 16

@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;

struct Element {
    source_element: u32, // elements, from the start of the binding
    target_element: u32, // elements, from the start of the binding
    inside: bool,        // whether the input has it
}

fn find_element(invocation: u32) -> Element {
    let window = invocation / copy.window_size;
    var rest = invocation % copy.window_size;
    let pick = find_pick(window);
    var found = Element(copy.source_offset, copy.target_offset + pick.number * copy.target_window, true);
    for (var d = 0u; d < copy.rank; d++) {
        let i = d / 4u;
        let j = d % 4u;
        let c = rest / copy.inner[i][j];
        rest %= copy.inner[i][j];
        let index = find_index(pick, d, c);
        found.inside = found.inside && index < copy.extents[i][j];
        found.source_element += index * copy.source_strides[i][j];
        found.target_element += c * copy.target_strides[i][j];
    }
    return found;
}

fn write_words(element: Element) {
    let words = element_nbytes / 4u; // of an element
    for (var i = 0u; i < words; i++) {
        var word = copy.fill[i];
        if (element.inside) {
            word = source_words[element.source_element * words + i];
        }
        atomicStore(&target_words[element.target_element * words + i], word);
    }
}

fn write_bits(element: Element) {
    var value = copy.fill.x;
    if (element.inside) {
        value = read_narrow(element.source_element);
    }
    let bits = 8u * element_nbytes;
    let lanes = elements_per_word();
    let shift = element.target_element % lanes * bits;
    let word = &target_words[element.target_element / lanes];
    // Nobody else changes these bits, so flipping those that differ sets them, whatever happens to the rest.
    let different = extractBits((atomicLoad(word) >> shift) ^ value, 0u, bits);
    atomicXor(word, different << shift);
}

@compute @workgroup_size(workgroup_size)
fn extract_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.lane);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let element = find_element(invocation);
    if (element.inside && element.source_element >= copy.segment) {
        return;
    }
    if (element_nbytes >= 4u) {
        write_words(element);
    } else {
        write_bits(element);
    }
}
