// last_writer_windows: the last-writer pass: for each index of the tensor, the last window that writes it.
//
//   invocation i  ->  element i of the dispatch (see WindowPlace), in the dimensions in which windows differ
//   new_winners[index] = the greatest number of all windows that write the index
//
// Numbers of windows start at a base above all earlier winners, so that the buffer need not be cleared.

@group(0) @binding(0) var<uniform> copy: Windows;
@group(0) @binding(2) var<storage, read_write> new_winners: array<atomic<u32>>;

@compute @workgroup_size(workgroup_size)
fn last_writer_windows(own: Invocation) {
    let invocation = invocation_number(own.group, own.groups, own.index);
    if (invocation >= copy.count * copy.window_size) {
        return;
    }
    let place = find_element(invocation);
    if (place.inside) {
        atomicMax(&new_winners[place.winner], copy.winner_base + place.pick.number);
    }
}
