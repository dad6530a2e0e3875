// invocations: which one of a dispatch is running.

// Entry points hand over its fields, never itself: naga 29 knows the grid of a D3D12 dispatch in an entry point only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,    // workgroups before its own, along each side of the grid
    @builtin(num_workgroups) groups: vec3<u32>, // workgroups along each side of the grid
    @builtin(local_invocation_index) lane: u32, // invocations before it in its workgroup
}

override workgroup_size: u32; // invocations

// Workgroups before one, row by row of the grid.
fn group_number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// Invocations before one, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, lane: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + lane;
}
