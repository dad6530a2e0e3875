// insert_words: rows of windows put into one tensor word by word: short rows, or the ends of rows whose whole blocks
// insert_rows has written.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` neighbouring words; with `ends`, those of the block that holds the row's head, or its tail
//
// A row is the last dimension in use: neighbours on both sides, maybe several channels an index, forwards, or with
// the indices in reverse order. Words are shared with other rows, or with bytes that no window has, so the target is
// atomic: an invocation changes the bytes of its own row and no others.
//
// Needs windows of which no two have an index in common, or winners, and pieces that are not contiguous; with winners in
// parts of rows, whole blocks that are written already.

override element_bytes: u32 = 4u; // bytes of what keeps its order when a row goes backwards: 1, 2, 4, 8 or 16
override channels: u32 = 1u;      // such elements an index
override mirrored: bool = true;   // whether some row goes backwards
override ends: bool = false;      // whether whole blocks of rows are written already

// A byte of a row from its lowest one in the source on, for one from its first in the target on.
fn reverse(row: TensorRow, position: u32) -> u32 {
    let group = channels * element_bytes;
    let index = position / group;
    let reversed = copy.row_bytes - position - group + 2u * (position - index * group);
    return select(position, reversed, row.backwards);
}

fn gather_word(row: TensorRow, position: u32) -> u32 {
    if (!mirrored) {
        return word_at(row.source + position);
    }
    let bytes = min(element_bytes, 4u); // that keep their order in a word
    var value = 0u;
    for (var i = 0u; i < 4u; i += bytes) {
        let element = word_at(row.source + reverse(row, position + i));
        value = insertBits(value, element, i * 8u, bytes * 8u);
    }
    return value;
}

@compute @workgroup_size(workgroup_size)
fn insert_words(own: Invocation) {
    let rows = copy.count * copy.window_size;
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), rows);
    if (is_left_over(piece, rows)) {
        return;
    }
    let row = find_tensor_row(piece.row, 16u);
    var start = row.extent.start;
    var stop = row.extent.stop;
    var first = start / 4u + piece.number * each;
    if (ends && piece.number == 0u) {
        stop = min(stop, row.extent.whole_unit * 16u);
    } else if (ends) {
        start = max(start, max(row.extent.stop_unit, row.extent.whole_unit) * 16u);
        first = start / 4u;
    }
    for (var k = 0u; k < each; k++) {
        let base = (first + k) * 4u;
        if (base < stop && start < stop) {
            let inside = below_byte(stop - base) & ~below_byte(max(start, base) - base);
            let mask = inside & won_bytes(row, base);
            let value = gather_word(row, base - row.start);
            if (mask == 0xffffffffu) {
                atomicStore(&target_words[first + k], value);
            } else if (mask != 0u) {
                write_bits(first + k, value, mask);
            }
        }
    }
}

// The bytes of the word from byte `base` on that a row is the last one to write; others than its own are any.
fn won_bytes(row: TensorRow, base: u32) -> u32 {
    if (!in_parts) {
        return select(0u, 0xffffffffu, wins(row.winner, row.window));
    }
    if (winners[copy.block_winners + base / 16u] > copy.winner_base + row.window) {
        return 0u;
    }
    let bytes = min(element_bytes, 4u); // that belong to one index
    var won = 0u;
    for (var i = 0u; i < 4u; i += bytes) {
        let byte = clamp(base + i, row.extent.start, row.extent.stop - 1u);
        let index = (byte - row.start) / tensor_stride_of(copy.rank - 1u);
        won = insertBits(won, select(0u, 0xffffffffu, wins(row.winner + index, row.window)), i * 8u, bytes * 8u);
    }
    return won;
}

// The bytes before `stop` of a word.
fn below_byte(stop: u32) -> u32 {
    return select((1u << (stop * 8u % 32u)) - 1u, 0xffffffffu, stop >= 4u);
}
