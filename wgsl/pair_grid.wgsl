// pair_grid: elements of 8 bytes at any stride, on GPUs, as pairs of words.
//
//   workgroup, lane  ->  one tile of a plane, `units` elements of it; where, says grid.wgsl

alias Unit = vec2<u32>;

const units: u32 = 8u; // elements that a lane takes, all loaded before the first is stored

@compute @workgroup_size(workgroup_size)
fn pair_grid(own: Invocation) {
    copy_tile(group_number(own.group, own.groups), own.lane);
}
