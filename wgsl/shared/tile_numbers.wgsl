// tile_numbers: which tile of which plane a number names; tiles go along the columns first, then down the rows, then from
// plane to plane.

struct TileNumber {
    column: u32, // tiles before it along the columns
    row: u32,    // tiles before it down the rows
    plane: u32,  // planes before its own
}

fn find_tile_number(number: u32) -> TileNumber {
    let rows = divide(number, copy.pieces_multiplier, copy.pieces_shift);
    let planes = divide(rows, copy.row_tiles_multiplier, copy.row_tiles_shift);
    return TileNumber(number - rows * copy.pieces, rows - planes * copy.row_tiles, planes);
}
