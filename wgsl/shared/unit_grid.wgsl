// unit_grid: the copy of a tile in units of the kernel's type, all loads of a lane before its first store.

@group(0) @binding(1) var<storage, read> source_units: array<Unit>;
@group(0) @binding(2) var<storage, read_write> target_units: array<Unit>;

fn copy_tile(group: u32, lane: u32) {
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
    let tile = find_tile(group);
    let column = lane_column(lane);
    let row = lane_row(lane);
    let source_first = tile.place.source_element + tile.column * source_column + tile.row * source_row;
    let target_first = tile.place.target_element + tile.column * target_column + tile.row * target_row;
    let source_unit = source_first + (column * source_column + row * source_row);
    let target_unit = target_first + (column * target_column + row * target_row);
    let source_ahead = copy.ahead_columns * source_column + copy.ahead_rows * source_row;
    let target_ahead = copy.ahead_columns * target_column + copy.ahead_rows * target_row;
    var held: array<Unit, units>;
    for (var k = 0u; k < units; k++) {
        held[k] = source_units[source_unit + k * source_ahead]; // beyond a plane anything, which nobody stores
    }
    for (var k = 0u; k < units; k++) {
        let inside = tile.column + column + k * copy.ahead_columns < columns;
        if (inside && tile.row + row + k * copy.ahead_rows < rows) {
            target_units[target_unit + k * target_ahead] = held[k];
        }
    }
}
