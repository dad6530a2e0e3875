// wide_grid: elements of 16 bytes at any stride, on GPUs, as vectors of four words.
//
//   workgroup, lane  ->  one tile of a plane, `units` elements of it; where, says grid.wgsl

alias Unit = vec4<u32>;

const units: u32 = 4u; // elements that a lane takes, all loaded before the first is stored

@compute @workgroup_size(workgroup_size)
fn wide_grid(own: Invocation) {
    copy_tile(group_number(own.group, own.groups), own.lane);
}
