// shifted_grid: rows of neighbours that the source has beside each other, or 2 or 4 elements apart, forwards or backwards,
// of any width below 16 bytes, in blocks of 16 bytes that may begin anywhere in the source, on GPUs. Whole blocks only: the
// ends of rows that begin or end inside of one are for row_ends.
//
//   workgroup, lane  ->  one tile of a plane, `units` blocks of it, counted from a row's first whole one; where,
//                        says grid.wgsl

override distance: u32; // source elements from one of a row to the next, forwards or backwards: 1, 2 or 4

const units: u32 = 4u; // blocks that a lane takes, all loaded before the first is stored

@compute @workgroup_size(workgroup_size)
fn shifted_grid(own: Invocation) {
    let group = group_number(own.group, own.groups);
    if (group >= copy.count) {
        return;
    }
    let before = copy.rank - 2u;
    let tile = find_tile(group);
    let row = tile.row + lane_row(own.lane);
    let column = tile.column + lane_column(own.lane);
    if (row >= size_of(before)) {
        return;
    }
    let place = Place(tile.place.source_element + row * source_stride_of(before),
                      tile.place.target_element + row * target_stride_of(before));
    let extent = find_row_extent(place);
    let blocks = extent.stop_unit - extent.whole_unit;
    let lowest = find_source(place, extent.whole_unit, distance); // byte, of the row's first whole block
    let offset = lowest % 16u;
    let ahead = copy.ahead_columns;
    let step = select(0u - distance, distance, is_forwards()); // source blocks a block
    let lowest_block = lowest / 16u + column * step;
    let target_block = extent.whole_unit + column;
    var held: array<vec4<u32>, units>;
    for (var k = 0u; k < units; k++) {
        // Beyond the row anything, which nobody stores.
        held[k] = read_from(lowest_block + k * ahead * step, offset, distance);
    }
    for (var k = 0u; k < units; k++) {
        if (column + k * ahead < blocks) {
            target_blocks[target_block + k * ahead] = held[k];
        }
    }
}
