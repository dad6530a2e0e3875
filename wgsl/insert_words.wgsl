// insert_words: inserts rows of windows into one tensor word by word: short rows, or the heads and tails of rows whose
// whole blocks insert_rows has written.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` consecutive words; with `ends`, words of the block with the row's head, with its tail, or,
//                     where a row has one piece, of both
//
// A row is the last dimension in use: contiguous on both sides, with one or more channels per index, forwards or with
// reversed indices.
//
// Needs disjoint windows, or winners, and striped pieces; with rows that overlap in part, insert_rows has written the
// whole blocks before.

@group(0) @binding(0) var<uniform> copy: Windows;

override element_bytes: u32 = 4u; // bytes per element, kept in order in a reversed row: 1, 2, 4, 8 or 16
override ends: bool = false;      // whether insert_rows has written the whole blocks

// The byte of a row in the source, from its lowest, for byte `position` of the row in the target.
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
    let bytes = min(element_bytes, 4u); // per element within a word
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
    // Surplus invocations write no word: after a return, OpenGL of Mesa 26.1 may not end loops in loops.
    let row = find_tensor_row(min(piece.row, rows - 1u));
    let extent = row.extent;
    let first = extent.start / 4u + piece.number * each;
    var start = max(extent.start, first * 4u);
    var stop = min(extent.stop, (first + each) * 4u);
    if (ends) {
        let behind = first_word_behind(row);
        start = select(max(extent.start, behind * 4u), extent.start, piece.number == 0u);
        stop = select(min(extent.stop, extent.whole_unit * 16u), extent.stop, piece.number + 1u == copy.pieces);
    }
    write_bytes(row, start, select(stop, 0u, piece.left_over));
}

// The first word behind the whole blocks of a row.
fn first_word_behind(row: TensorRow) -> u32 {
    return max(row.extent.stop_unit, row.extent.whole_unit) * 4u;
}

// A word to write, or the one behind the whole blocks that insert_rows has written.
fn without_blocks(row: TensorRow, word: u32) -> u32 {
    return select(word, first_word_behind(row), ends && word == row.extent.whole_unit * 4u);
}

// Writes the bytes from `start` to before `stop` of a row, without whole blocks. One loop for head and tail: compilers
// inline its body once.
fn write_bytes(row: TensorRow, start: u32, stop: u32) {
    for (var word = without_blocks(row, start / 4u); word * 4u < stop; word = without_blocks(row, word + 1u)) {
        let base = word * 4u;
        let inside = below_byte(stop - base) & ~below_byte(max(start, base) - base);
        let mask = inside & won_bytes(row, base);
        let value = gather_word(row, base - row.start);
        if (mask == 0xffffffffu) {
            atomicStore(&target_words[word], value);
        } else if (mask != 0u) {
            write_bits(word, value, mask);
        }
    }
}

// A mask of the bytes of the word at byte `base` that this row writes last; bytes outside of the row are arbitrary.
fn won_bytes(row: TensorRow, base: u32) -> u32 {
    if (!in_parts) {
        return select(0u, 0xffffffffu, wins(row.winner, row.window));
    }
    if (winners[copy.block_winners + base / 16u] > copy.winner_base + row.window) {
        return 0u;
    }
    let bytes = min(element_bytes, 4u); // per element within a word
    var won = 0u;
    for (var i = 0u; i < 4u; i += bytes) {
        let byte = clamp(base + i, row.extent.start, row.extent.stop - 1u);
        let index = divide_by(byte - row.start, copy.rank - 1u);
        won = insertBits(won, select(0u, 0xffffffffu, wins(row.winner + index, row.window)), i * 8u, bytes * 8u);
    }
    return won;
}
