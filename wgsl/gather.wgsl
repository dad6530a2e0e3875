// gather: gathers elements of 4, 8 and 16 bytes at indices. One invocation copies up to `each` elements of a row.
//
//   invocation n  ->  the elements of piece n (see IndexedPiece)
//
// Indices are clamped to their range.

override element_bytes: u32 = 4u; // bytes per element: 4, 8 or 16
override ahead: u32 = 0u;         // dimensions up to the next row in memory, loaded too for a CPU's cache; 0 for none

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// The element that a piece would read of the next row if rows were copied in order: one load per piece brings all of
// that row into a CPU's cache. Beyond the last row it may be any, which WGSL allows to read.
fn find_source_ahead(piece: IndexedPiece) -> u32 {
    let last = copy.rank - 1u;
    let next_row = moved(piece.next, last - ahead, 1u);
    var element = next_row.source_element;
    for (var t = 0u; t < tables; t++) {
        var index = min(piece.number, piece.bounds.extents[t] - 1u);
        if (copy.table_strides[2u * t + last / 4u][last % 4u] == 0u) {
            index = find_in_table(next_row.entries[t], piece.bounds.extents[t], piece.bounds.wraps[t]).value;
        }
        element += index * piece.bounds.steps[t];
    }
    return element;
}

@compute @workgroup_size(workgroup_size)
fn gather(own: Invocation) {
    var piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    let words = element_bytes / 4u; // of an element
    var unused = 0u; // as no dispatch has 0 rows, which no compiler knows: it keeps the load
    if (ahead > 0u) { unused = source_words[find_source_ahead(piece) * words]; }
    for (var k = 0u; k < each; k++) {
        let element = next_element(&piece);
        if (element.is_one) {
            let source = (element.at.source_element + element.reached.elements) * words;
            let first = element.at.target_element * words;
            target_words[first] = select(source_words[source], unused, ahead > 0u && copy.count == 0u);
            for (var i = 1u; i < words; i++) {
                target_words[first + i] = source_words[source + i];
            }
        }
    }
}
