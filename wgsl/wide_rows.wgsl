// wide_rows: copies elements of 16 bytes by rows of the last dimension, with one load and one store per element.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` elements of the row, blocked or striped (see Piece)

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_vectors: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_vectors: array<vec4<u32>>;

@compute @workgroup_size(workgroup_size)
fn wide_rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let last = copy.rank - 1u;
    let size = size_of(last);
    let source_stride = source_stride_of(last);
    let target_stride = target_stride_of(last);
    let place = find_place(piece.row, last);
    let first = first_unit(piece, 0u, size);
    for (var k = 0u; k < each; k++) {
        let c = first + k * unit_step();
        if (contiguous || c < size) {
            let source_element = place.source_element + c * source_stride;
            let target_element = place.target_element + c * target_stride;
            target_vectors[target_element] = source_vectors[source_element];
        }
    }
}
