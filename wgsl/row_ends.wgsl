// row_ends: the blocks of 16 bytes that hold the ends of rows, where rows of shifted_grid begin or end inside of one.
//
//   invocation n  ->  the first and the last block of row n, where the row has a part of them

@compute @workgroup_size(workgroup_size)
fn row_ends(own: Invocation) {
    let row = invocation_number(own.group, own.groups, own.lane);
    if (row >= copy.count) {
        return;
    }
    let last = copy.rank - 1u;
    let size_nbytes = copy.sizes[last / 4u][last % 4u] * element_nbytes;
    let place = find_place(row, last);
    let extent = find_extent(place.target_element * element_nbytes, size_nbytes, 16u);
    copy_ends(Piece(row, 0u), extent, place);
}
