// masked_pairs: writes elements of 8 bytes where a mask is true.
//
//   invocation n  ->  piece n of the elements: `each` of them, blocked or striped (see Piece)
//   element e     ->  element e of the target, written if byte e of the mask is not 0
//
// Needs one dimension, a packed mask and target, and a source that is packed or one element; where pieces are
// contiguous, at least `each` elements, which are all written, those with a false mask with their old value: masked
// accesses are slower on CPU adapters.

alias Unit = vec2<u32>;

@group(0) @binding(0) var<uniform> copy: Indexed;
@group(0) @binding(1) var<storage, read> source_units: array<Unit>;
@group(0) @binding(2) var<storage, read_write> target_units: array<Unit>;

@compute @workgroup_size(workgroup_size)
fn masked_pairs(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), 1u);
    let first = first_unit(piece, 0u, copy.elements);
    let source_step = copy.dimensions[0].source_stride;
    for (var k = 0u; k < each; k++) {
        let element = first + k * unit_step();
        if (contiguous || (!piece.left_over && element < copy.elements)) {
            let byte = copy.table_offsets.x + element;
            let written = extractBits(index_units[byte / 4u], byte % 4u * 8u, 8u) != 0u;
            let unit = copy.target_offset + element;
            if (contiguous || written) {
                let value = source_units[copy.source_offset + element * source_step];
                target_units[unit] = select(target_units[unit], value, written);
            }
        }
    }
}
