// claim_windows: the last-writer pass: for each index of the tensor the number of the last window that writes it.
//
//   invocation i  ->  an element of a window, as windows says, in the dimensions in which windows differ
//   claims[index] = the greatest claim of all windows that write the index
//
// A claim is the number of a window plus a base, which is above all earlier claims, so that earlier claims and zeros
// need not be cleared.

@group(0) @binding(2) var<storage, read_write> claims: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn claim_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.index);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let element = find_element(invocation);
    if (element.inside) {
        atomicMax(&claims[element.claim], copy.claim_base + element.window);
    }
}
