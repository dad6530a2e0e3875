// tiles: elements of 4, 8 and 16 bytes of a permuted source, through workgroup memory. The last dimension is where
// neighbours of the target lie, the one before it where neighbours of the source lie.
//
//   workgroup g = y * groups.x + x  ->  one tile of side x side elements of these two dimensions, of one index of all
//                                       the others
//   invocation                      ->  every workgroup_size-th element of the tile, first in the order of the source,
//                                       then in that of the target
//
// Workgroups beyond the last tile repeat tiles, with the same values.

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    multipliers: array<vec4<u32>, 2>,    // of each dimension's divisor, for kernels that must not divide
    shifts: array<vec4<u32>, 2>,         // bits, likewise
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // tiles
    pieces: u32,                         // invocations a row, for kernels that deal rows
    pieces_multiplier: u32,              // of the divisor `pieces`
    pieces_shift: u32,                   // bits, likewise
    unused: u32,                         // fills the last 16 bytes
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 4, 8 or 16
override each: u32;           // elements of a tile's side

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// One column more than needed, so that neither order meets one memory bank again and again.
var<workgroup> tile: array<u32, each * (each + 1u) * (element_nbytes / 4u)>;

@compute @workgroup_size(workgroup_size)
fn tiles(@builtin(workgroup_id) group: vec3<u32>,
         @builtin(num_workgroups) groups: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let words = element_nbytes / 4u;
    let last = copy.rank - 1u;
    let before = copy.rank - 2u;
    let columns = copy.sizes[last / 4u][last % 4u];
    let rows = copy.sizes[before / 4u][before % 4u];
    let number = group.y * groups.x + group.x;
    let tiles_across = (columns + each - 1u) / each;
    let tiles_down = (rows + each - 1u) / each;
    let first_column = number % tiles_across * each;
    let first_row = number / tiles_across % tiles_down * each;
    var source_element = copy.source_offset;
    var target_element = copy.target_offset;
    var rest = number / tiles_across / tiles_down;
    for (var d = before; d > 0u; d--) {
        let i = (d - 1u) / 4u;
        let j = (d - 1u) % 4u;
        let c = rest % copy.sizes[i][j];
        rest /= copy.sizes[i][j];
        source_element += c * copy.source_strides[i][j];
        target_element += c * copy.target_strides[i][j];
    }
    for (var k = lane; k < each * each; k += workgroup_size) {
        let row = first_row + k % each;
        let column = first_column + k / each;
        if (row < rows && column < columns) {
            let element = source_element + row * copy.source_strides[before / 4u][before % 4u]
                                         + column * copy.source_strides[last / 4u][last % 4u];
            let place = k / each * (each + 1u) + k % each;
            for (var w = 0u; w < words; w++) {
                tile[place * words + w] = source_words[element * words + w];
            }
        }
    }
    workgroupBarrier();
    for (var k = lane; k < each * each; k += workgroup_size) {
        let row = first_row + k / each;
        let column = first_column + k % each;
        if (row < rows && column < columns) {
            let element = target_element + row * copy.target_strides[before / 4u][before % 4u]
                                         + column * copy.target_strides[last / 4u][last % 4u];
            let place = k % each * (each + 1u) + k / each;
            for (var w = 0u; w < words; w++) {
                target_words[element * words + w] = tile[place * words + w];
            }
        }
    }
}
