// unit_grid: copies elements of 4 or 16 bytes at any stride, on GPUs: kernels word_grid and wide_grid.
//
//   workgroup g, invocation i  ->  `units` units of tile g of a plane (see TileUnit), all loaded before the first store
//
// A unit is one element. Each kernel's module begins with its type, `alias Unit = u32;` or vec4<u32>, and the units per
// invocation, `const units: u32 = 8u;`.

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_units: array<Unit>;
@group(0) @binding(2) var<storage, read_write> target_units: array<Unit>;

@compute @workgroup_size(workgroup_size)
fn unit_grid(own: Invocation) {
    let group = group_number(own.group, own.groups);
    if (group >= copy.count) {
        return;
    }
    let last = copy.rank - 1u;
    let before = copy.rank - 2u;
    let columns = size_of(last);
    let rows = size_of(before);
    let source_column = source_stride_of(last);
    let source_row = source_stride_of(before);
    let target_column = target_stride_of(last);
    let target_row = target_stride_of(before);
    let first = find_tile_unit(group, own.index);
    let source_unit = first.plane.source_element + first.column * source_column + first.row * source_row;
    let target_unit = first.plane.target_element + first.column * target_column + first.row * target_row;
    let source_ahead = copy.ahead_columns * source_column + copy.ahead_rows * source_row;
    let target_ahead = copy.ahead_columns * target_column + copy.ahead_rows * target_row;
    var held: array<Unit, units>;
    for (var k = 0u; k < units; k++) {
        // Units outside of the plane, which may be beyond the binding, are not stored.
        held[k] = source_units[source_unit + k * source_ahead];
    }
    for (var k = 0u; k < units; k++) {
        let inside = first.column + k * copy.ahead_columns < columns;
        if (inside && first.row + k * copy.ahead_rows < rows) {
            target_units[target_unit + k * target_ahead] = held[k];
        }
    }
}
