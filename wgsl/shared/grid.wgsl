// grid: which tile of which plane a workgroup takes, and where its lanes go.
//
//   workgroup g  ->  tile number g, of a plane of the last two dimensions: columns of the last, rows of the one before
//   lane         ->  2^lane_shift lanes lie beside each other along the columns, the others in the rows below;
//                    a lane takes `units` units, each so many columns or rows ahead of the one before
//
// So all that is divided is the same for every lane of a workgroup, and neighbouring lanes touch neighbouring units.

struct Tile {
    place: Place, // of its plane's first unit
    column: u32,  // columns before its first
    row: u32,     // rows before its first
}

fn tile_columns() -> u32 {
    return max(copy.ahead_columns * units, 1u << copy.lane_shift);
}

fn tile_rows() -> u32 {
    return max(copy.ahead_rows * units, workgroup_size >> copy.lane_shift);
}

fn find_tile(group: u32) -> Tile {
    let number = find_tile_number(group);
    let column = number.column * tile_columns();
    let row = number.row * tile_rows();
    return Tile(find_place(number.plane, copy.rank - 2u), column, row);
}

// Columns and rows of a lane's first unit from its tile's first.
fn lane_column(lane: u32) -> u32 {
    return lane & ((1u << copy.lane_shift) - 1u);
}

fn lane_row(lane: u32) -> u32 {
    return lane >> copy.lane_shift;
}
