// grid: the tile of a workgroup, and the units of each of its invocations.
//
//   workgroup g   ->  tile number g, of a plane of the last two dimensions: columns of the last, rows of the one before
//   invocation i  ->  column i % 2^across_shift and row i / 2^across_shift of the tile, and units - 1 more, each
//                     ahead_columns columns and ahead_rows rows further than the one before
//
// Divisions are the same for a whole workgroup, and neighbouring invocations touch neighbouring units.

struct Tile {
    place: Place, // of its plane's first unit
    column: u32,  // columns before its first
    row: u32,     // rows before its first
}

fn tile_columns() -> u32 {
    return max(copy.ahead_columns * units, 1u << copy.across_shift);
}

fn tile_rows() -> u32 {
    return max(copy.ahead_rows * units, workgroup_size >> copy.across_shift);
}

fn find_tile(group: u32) -> Tile {
    let number = find_tile_number(group);
    let column = number.column * tile_columns();
    let row = number.row * tile_rows();
    return Tile(find_place(number.plane, copy.rank - 2u), column, row);
}

// Columns and rows from a tile's first unit to the first unit of an invocation of its workgroup.
fn own_column(index: u32) -> u32 {
    return index & ((1u << copy.across_shift) - 1u);
}

fn own_row(index: u32) -> u32 {
    return index >> copy.across_shift;
}
