// subword_ends: word by word, the blocks of 16 bytes at the heads and tails of unaligned rows that pixels copies.
//
//   invocation n  ->  piece n % 8 of row n / 8: 0 to 3 are words of the block with the row's head, 4 to 7 with its tail
//
// A row is the last two dimensions. Needs target strides in descending order, each larger than the extent of all
// dimensions after it, the last one 1, and no gaps inside a row.

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

@compute @workgroup_size(workgroup_size)
fn subword_ends(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (piece.left_over) {
        return;
    }
    let row = find_runs(copy.paired == 1u);
    let place = find_place(piece.row, row.dimensions);
    let per_word = elements_per_word();
    let extent = find_extent(place.target_element, row.size, 4u * per_word);
    let is_head = piece.number < 4u;
    let word = 4u * select(extent.stop_unit, extent.first_unit, is_head) + piece.number % 4u;
    // The end of the previous row, modulo 2^32 of the first one.
    let before = find_place(piece.row - 1u, row.dimensions).target_element + row.size;
    let taken = piece.row > 0u && before > word * per_word;
    let whole = is_head && extent.first_unit == extent.whole_unit;
    let again = !is_head && extent.stop_unit < extent.whole_unit; // head and tail of a row inside one block
    let inside = word * per_word < extent.stop && (word + 1u) * per_word > extent.start;
    if (inside && !taken && !whole && !again) {
        copy_edge_word(word, piece, extent, place, row);
    }
}
