// common: for every kernel but slice1: invocation numbers, sizes of dimensions, divisions, and units of rows.

// Entry points pass its fields, not the struct: naga 29 provides num_workgroups on D3D12 in entry points only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,     // workgroup index, in each dimension of the grid
    @builtin(num_workgroups) groups: vec3<u32>,  // workgroups, in each dimension of the grid
    @builtin(local_invocation_index) index: u32, // index within the workgroup
}

override workgroup_size: u32 = 64u; // invocations

// The row-major index of a workgroup in the grid.
fn group_number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// The index of an invocation among all of the dispatch, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, index: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + index;
}

// The size of dimension d; four sizes are packed into each vector.
fn size_of(d: u32) -> u32 { return copy.sizes[d / 4u][d % 4u]; }

// The upper half of the 64-bit product.
fn multiply_high(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let carry = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (carry >> 16u);
}

// n divided by a divisor, for n < 2^31.
fn divide(n: u32, multiplier: u32, shift: u32) -> u32 {
    return (multiply_high(n, multiplier) + n) >> shift;
}

// n divided by the divisor of dimension d.
fn divide_by(n: u32, d: u32) -> u32 {
    return divide(n, copy.multipliers[d / 4u][d % 4u], copy.shifts[d / 4u][d % 4u]);
}

// The target range of a row, in elements or bytes as the kernel defines, and the units that it covers.
struct Extent {
    start: u32,      // elements or bytes
    stop: u32,       // elements or bytes, exclusive
    first_unit: u32, // the unit that contains `start`
    whole_unit: u32, // the first unit that is wholly inside the row
    stop_unit: u32,  // one past the last unit that is wholly inside the row
}

fn find_extent(start: u32, size: u32, places_per_unit: u32) -> Extent {
    let stop = start + size;
    let whole_unit = (start + places_per_unit - 1u) / places_per_unit;
    return Extent(start, stop, start / places_per_unit, whole_unit, stop / places_per_unit);
}
