// tiles: transposes elements of 4, 8 and 16 bytes through workgroup memory. The target is contiguous along the last
// dimension (columns), the source along the one before it (rows).
//
//   workgroup g   ->  tile g of `each` x `each` elements of these two dimensions, at one index of all others
//   invocation i  ->  elements i, i + workgroup_size, ... of the tile: loaded in source order, stored in target order
//
// Repeats: surplus workgroups write the last tile again

override element_bytes: u32 = 4u; // bytes per element: 4, 8 or 16
override each: u32 = 16u;         // elements per tile side

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// Words of a tile, padded by one column so that neither order has bank conflicts. Named, because naga 29 panics at an
// array size that is an expression where overrides follow.
override tile_words: u32 = each * (each + 1u) * (element_bytes / 4u);

var<workgroup> tile: array<u32, tile_words>;

@compute @workgroup_size(workgroup_size)
fn tiles(own: Invocation) {
    let words = element_bytes / 4u; // per element
    let last = copy.rank - 1u;
    let before = copy.rank - 2u;
    let columns = size_of(last);
    let rows = size_of(before);
    let number = min(group_number(own.group, own.groups), copy.count - 1u);
    let tiles_across = (columns + each - 1u) / each;
    let tiles_down = (rows + each - 1u) / each;
    let first_column = number % tiles_across * each;
    let first_row = number / tiles_across % tiles_down * each;
    let first = find_place(number / tiles_across / tiles_down, before);
    for (var k = own.index; k < each * each; k += workgroup_size) {
        let row = first_row + k % each;
        let column = first_column + k / each;
        if (row < rows && column < columns) {
            let element = first.source_element + row * source_stride_of(before)
                                               + column * source_stride_of(last);
            let place = k / each * (each + 1u) + k % each;
            for (var w = 0u; w < words; w++) {
                tile[place * words + w] = source_words[element * words + w];
            }
        }
    }
    workgroupBarrier();
    for (var k = own.index; k < each * each; k += workgroup_size) {
        let row = first_row + k / each;
        let column = first_column + k % each;
        if (row < rows && column < columns) {
            let element = first.target_element + row * target_stride_of(before)
                                               + column * target_stride_of(last);
            let place = k % each * (each + 1u) + k / each;
            for (var w = 0u; w < words; w++) {
                target_words[element * words + w] = tile[place * words + w];
            }
        }
    }
}

// Entry points pass its fields, not the struct: naga 29 provides num_workgroups on D3D12 in entry points only.
struct Invocation {
    @builtin(workgroup_id) group: vec3<u32>,     // workgroup index, in each dimension of the grid
    @builtin(num_workgroups) groups: vec3<u32>,  // workgroups, in each dimension of the grid
    @builtin(local_invocation_index) index: u32, // index within the workgroup
}

override workgroup_size: u32 = 64u; // invocations

// The row-major index of a workgroup in the grid.
fn group_number(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

fn size_of(d: u32) -> u32 { return copy.dimensions[d].size; }

// The upper half of the 64-bit product.
fn multiply_high(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let carry = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (carry >> 16u);
}

// n divided by a divisor, for n < 2^31.
fn divide(n: u32, multiplier: u32, shift: u32) -> u32 {
    return (multiply_high(n, multiplier) + n) >> shift;
}

// n divided by the divisor of dimension d.
fn divide_by(n: u32, d: u32) -> u32 {
    return divide(n, copy.dimensions[d].multiplier, copy.dimensions[d].shift);
}

struct Copy {
    dimensions: array<Dimension, 8>, // the first `rank` of them are in use
    source_offset: u32,              // elements, from the start of the binding
    target_offset: u32,              // elements, from the start of the binding
    rank: u32,                       // dimensions in use
    count: u32,                      // elements, rows, words or tiles, as the kernel's header maps them
    pieces: u32,                     // invocations per row, or tiles per tile row of a plane
    pieces_multiplier: u32,          // of the divisor `pieces`
    pieces_shift: u32,               // bits, for the same divisor
    row_tiles: u32,                  // tile rows per plane
    row_tiles_multiplier: u32,       // of the divisor `row_tiles`
    row_tiles_shift: u32,            // bits, for the same divisor
    across_shift: u32,               // 2^across_shift consecutive invocations span the columns of a tile
    ahead_columns: u32,              // columns between consecutive units of an invocation
    ahead_rows: u32,                 // rows between consecutive units of an invocation
    element_bytes: u32,              // bytes per element, for kernels without an element_bytes override
    paired: u32,                     // 1 where a row is the last two dimensions, 0 where it is the last one
    unused: u32,                     // padding to 16 bytes
}

struct Dimension {
    size: u32,          // elements
    source_stride: u32, // elements, modulo 2^32: a negative stride wraps around
    target_stride: u32, // elements
    multiplier: u32,    // of its divisor, for kernels that must not divide
    shift: u32,         // bits, for the same divisor
    unused_0: u32,      // padding to 16 bytes
    unused_1: u32,      // padding to 16 bytes
    unused_2: u32,      // padding to 16 bytes
}

@group(0) @binding(0) var<uniform> copy: Copy;

fn source_stride_of(d: u32) -> u32 { return copy.dimensions[d].source_stride; }

fn target_stride_of(d: u32) -> u32 { return copy.dimensions[d].target_stride; }

struct Place {
    source_element: u32, // elements, from the start of the binding
    target_element: u32, // elements, from the start of the binding
}

// The offsets of a row-major index over the first `dimensions` dimensions, index 0 in all others.
fn find_place(index: u32, dimensions: u32) -> Place {
    var place = Place(copy.source_offset, copy.target_offset);
    var rest = index;
    for (var d = dimensions; d > 0u; d--) {
        var c = rest;
        if (d > 1u) {
            rest = divide_by(rest, d - 1u);
            c -= rest * size_of(d - 1u);
        }
        place.source_element += c * source_stride_of(d - 1u);
        place.target_element += c * target_stride_of(d - 1u);
    }
    return place;
}

@group(0) @binding(1) var<storage, read> source_words: array<u32>;
