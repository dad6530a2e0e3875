// rows: copies elements of 4 and 8 bytes by rows of the last dimension, or of the last two where the last is short.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` elements of the row, blocked or striped (see Piece)

override element_bytes: u32 = 4u; // bytes per element: 4 or 8
override paired: bool = false;    // as in `Copy`; a constant, since SwiftShader pays for runs at every element

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// Reads an element; the second word of a 4-byte element is 0.
fn read_element(source_element: u32) -> vec2<u32> {
    if (element_bytes == 4u) {
        return vec2(source_words[source_element], 0u);
    }
    return vec2(source_words[2u * source_element], source_words[2u * source_element + 1u]);
}

fn write_element(target_element: u32, value: vec2<u32>) {
    if (element_bytes == 4u) {
        target_words[target_element] = value.x;
    } else {
        target_words[2u * target_element] = value.x;
        target_words[2u * target_element + 1u] = value.y;
    }
}

@compute @workgroup_size(workgroup_size)
fn rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let row = find_runs(paired);
    let place = find_place(piece.row, row.dimensions);
    let first = first_unit(piece, 0u, row.size);
    var runs = runs_before(first, paired);
    var stop = runs * row.run + row.run; // of the run, in elements of the row
    for (var k = 0u; k < each; k++) {
        let c = first + k * unit_step();
        if (contiguous) {
            runs += u32(c == stop);
            stop += select(0u, row.run, c == stop);
        } else {
            runs = runs_before(c, paired);
        }
        if (contiguous || c < row.size) {
            let source_element = place.source_element + c * row.source_stride + runs * row.source_carry;
            let target_element = place.target_element + c * row.target_stride + runs * row.target_carry;
            write_element(target_element, read_element(source_element));
        }
    }
}
