// common: what every kernel but slice1 needs: invocations, sizes of dimensions, divisions, and units of rows.

// Entry points pass on its fields, not the struct: naga 29 knows the grid of a D3D12 dispatch in an entry point only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,     // workgroups before its own, along each side of the grid
    @builtin(num_workgroups) groups: vec3<u32>,  // workgroups along each side of the grid
    @builtin(local_invocation_index) index: u32, // invocations before it in its workgroup
}

override workgroup_size: u32 = 64u; // invocations

// Workgroups before one, row by row of the grid.
fn group_number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// Invocations before one, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, index: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + index;
}

// Dimension d of an array that is packed four to a vector.
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

// A row in the target, in places: elements or bytes, as the kernel says.
struct Extent {
    start: u32,      // places before its first
    stop: u32,       // places before its end
    first_unit: u32, // units before the one that holds its first place
    whole_unit: u32, // units before the first that is all the row's
    stop_unit: u32,  // units before the end of the last that is all the row's
}

fn find_extent(start: u32, size: u32, places_per_unit: u32) -> Extent {
    let stop = start + size;
    let whole_unit = (start + places_per_unit - 1u) / places_per_unit;
    return Extent(start, stop, start / places_per_unit, whole_unit, stop / places_per_unit);
}
