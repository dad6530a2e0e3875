// gather: gathers elements of 4, 8 or 16 bytes at indices: kernels gather, pair_gather and wide_gather.
//
//   invocation n  ->  the elements of piece n (see IndexedPiece), up to `each` of a row
//
// A unit is one element. Each kernel's module begins with its type, `alias Unit = u32;`, vec2<u32> or vec4<u32>.
// Indices are clamped to their range.

override ahead: u32 = 0u; // dimensions up to the next row in memory, loaded too for a CPU's cache; 0 for none

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(1) var<storage, read> source_units: array<Unit>;
@group(0) @binding(2) var<storage, read_write> target_units: array<Unit>;

// The element that a piece would read of the next row if rows were copied in order: one load per piece brings all of
// that row into a CPU's cache. Beyond the last row it may be any, which WGSL allows to read.
fn find_source_ahead(piece: IndexedPiece) -> u32 {
    let last = copy.rank - 1u;
    let next_row = moved(piece.first, last - ahead, 1u);
    let strides = copy.dimensions[last].table_strides;
    var element = next_row.source_element;
    for (var t = 0u; t < tables; t++) {
        var index = min(piece.number, piece.bounds.extents[t] - 1u);
        if (strides[t] == 0u) {
            index = find_in_table(next_row.entries[t], piece.bounds.extents[t], piece.bounds.wraps[t]).value;
        }
        element += index * piece.bounds.steps[t];
    }
    return element;
}

@compute @workgroup_size(workgroup_size)
fn gather(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    var unused = Unit(); // as no dispatch has 0 rows, which no compiler knows: it keeps the load
    if (ahead > 0u) {
        unused = source_units[find_source_ahead(piece)]; // may be beyond the binding
    }
    var element = piece.first;
    for (var k = 0u; k < each; k++) {
        let reached = find_offsets(piece, element);
        if (is_one(piece, k) && reached.copied) {
            let value = source_units[element.source_element + reached.elements];
            target_units[element.target_element] = select(value, unused, ahead > 0u && copy.count == 0u);
        }
        element = after(element, piece.step);
    }
}
