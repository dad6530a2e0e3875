// rows: copies elements of 4, 8 or 16 bytes by rows of the last dimension, or of the last two where the last is short:
// kernels rows and wide_rows.
//
//   invocation n  ->  elements of piece n (see Piece)
//
// Each kernel's module begins with the type of a unit, `alias Unit = u32;` or vec4<u32>. A unit is one element; of 8
// bytes an element is two words, since bindings of those may begin at any word.

override element_bytes: u32 = 4u; // bytes per element: 4, 8 or 16
override paired: bool = false;    // as in `Copy`; a constant, since SwiftShader pays for runs at every element

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_units: array<Unit>;
@group(0) @binding(2) var<storage, read_write> target_units: array<Unit>;

fn move_element(source_element: u32, target_element: u32) {
    if (element_bytes == 8u) {
        let low = source_units[2u * source_element];
        let high = source_units[2u * source_element + 1u];
        target_units[2u * target_element] = low;
        target_units[2u * target_element + 1u] = high;
    } else {
        target_units[target_element] = source_units[source_element];
    }
}

@compute @workgroup_size(workgroup_size)
fn rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.index), copy.count);
    if (piece.left_over) {
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
            move_element(source_element, target_element);
        }
    }
}
