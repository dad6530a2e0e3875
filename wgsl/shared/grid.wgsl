// grid: the tile of a workgroup, and the units of each of its invocations.
//
//   workgroup g   ->  tile g of a plane of the last two dimensions: the last is columns, the one before it rows
//   invocation i  ->  unit k < units: column i % 2^across_shift + k * ahead_columns,
//                     row i / 2^across_shift + k * ahead_rows of the tile
//
// Divisions are uniform across a workgroup, and consecutive invocations access consecutive units.

struct Tile {
    place: Place, // of the plane's first unit
    column: u32,  // first column
    row: u32,     // first row
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

// Columns and rows from the first unit of a tile to the first unit of an invocation.
fn own_column(index: u32) -> u32 {
    return index & ((1u << copy.across_shift) - 1u);
}

fn own_row(index: u32) -> u32 {
    return index >> copy.across_shift;
}
