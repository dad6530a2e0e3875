// gather: gathers elements of 4, 8 or 16 bytes at indices: kernels gather, pair_gather and wide_gather.
//
//   invocation n  ->  the elements of piece n (see IndexedPiece), up to `each` of a row
//
// A unit is one element. Each kernel's module begins with its type, `alias Unit = u32;`, vec2<u32> or vec4<u32>.
// Indices are clamped to their range.

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(1) var<storage, read> source_units: array<Unit>;
@group(0) @binding(2) var<storage, read_write> target_units: array<Unit>;

@compute @workgroup_size(workgroup_size)
fn gather(own: Invocation) {
    let piece = find_indexed_piece(invocation_number(own.group, own.groups, own.index));
    var element = piece.first;
    for (var k = 0u; k < each; k++) {
        let reached = find_offsets(piece, element);
        if (is_one(piece, k) && reached.copied) {
            target_units[element.target_element] = source_units[element.source_element + reached.elements];
        }
        element = after(element, piece.step);
    }
}
