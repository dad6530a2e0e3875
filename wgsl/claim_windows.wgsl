// claim_windows: which of many windows that may overlap has the last word on an index of the tensor.
//
//   invocation i  ->  an element of a window, as window_elements.wgsl says, in the dimensions in which windows differ
//   claims[index] = the greatest of the claims of all windows that have the index
//
// Claims are numbers of windows, counted from a base above everything that is claimed already, so that claims of
// another part of the tensor, or a buffer of zeros, need not be cleared.

@group(0) @binding(2) var<storage, read_write> claims: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn claim_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.lane);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let element = find_element(invocation);
    if (element.inside) {
        atomicMax(&claims[element.claim], copy.claim_base + element.window);
    }
}
