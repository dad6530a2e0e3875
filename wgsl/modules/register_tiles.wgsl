// register_tiles: transposes tiles of 4 x 4 sub-word elements in registers. The target is contiguous along the last
// dimension (columns); the source along the one before it (rows).
//
//   invocation n  ->  tiles of index n of all dimensions before the last three: the first of these has `each` tiles,
//                     the last two are the rows and columns of a tile
//
// Needs the four elements of each column and of each row of a tile in whole words: offsets and all other strides are
// multiples of four.
// Repeats: surplus invocations write the last tiles again

override element_bytes: u32 = 1u; // bytes per element: 1 or 2

@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// One word of each of four columns: the first column begins at source element `first`.
fn four_columns(first: u32, word: u32) -> vec4<u32> {
    let step = source_stride_of(copy.rank - 1u);
    let places = (vec4(first) + vec4(0u, 1u, 2u, 3u) * step) / elements_per_word() + word;
    return vec4(source_words[places.x], source_words[places.y], source_words[places.z], source_words[places.w]);
}

// Writes a tile whose first row begins at target element `first`.
fn write_tile(source_first: u32, first: u32) {
    let row = target_stride_of(copy.rank - 2u) / elements_per_word(); // words
    var place = first / elements_per_word();
    for (var word = 0u; word < element_bytes; word++) {
        let words = four_columns(source_first, word);
        if (element_bytes == 1u) {
            let rows = turned_bytes(words);
            target_words[place] = rows.x;
            target_words[place + row] = rows.y;
            target_words[place + 2u * row] = rows.z;
            target_words[place + 3u * row] = rows.w;
        } else {
            let left = turned_halves(words.x, words.y);
            let right = turned_halves(words.z, words.w);
            target_words[place] = left.x;
            target_words[place + 1u] = right.x;
            target_words[place + row] = left.y;
            target_words[place + row + 1u] = right.y;
        }
        place += 2u * row; // to the rows of the next halves
    }
}

@compute @workgroup_size(workgroup_size)
fn register_tiles(own: Invocation) {
    let tiles = copy.rank - 3u;
    let place = find_place(min(invocation_number(own.group, own.groups, own.index), copy.count - 1u), tiles);
    let source_step = source_stride_of(tiles);
    let target_step = target_stride_of(tiles);
    for (var k = 0u; k < each; k++) {
        write_tile(place.source_element + k * source_step, place.target_element + k * target_step);
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

// The index of an invocation among all of the dispatch, workgroup by workgroup.
fn invocation_number(group: vec3<u32>, groups: vec3<u32>, index: u32) -> u32 {
    return group_number(group, groups) * workgroup_size + index;
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

override each: u32 = 4u;           // units per invocation

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

// Elements per word; at least 1, since compilers reject division by 0 even where it never runs.
fn elements_per_word() -> u32 {
    return max(4u / element_bytes, 1u);
}

// Transposes 4 x 4 bytes: the words of four rows, from one word of each of four columns.
fn turned_bytes(words: vec4<u32>) -> vec4<u32> {
    let even = (words.xz & vec2(0x00ff00ffu)) | ((words.yw & vec2(0x00ff00ffu)) << vec2(8u));
    let odd = ((words.xz >> vec2(8u)) & vec2(0x00ff00ffu)) | (words.yw & vec2(0xff00ff00u));
    return vec4((even.x & 0xffffu) | (even.y << 16u), (odd.x & 0xffffu) | (odd.y << 16u),
                (even.x >> 16u) | (even.y & 0xffff0000u), (odd.x >> 16u) | (odd.y & 0xffff0000u));
}

// Transposes 2 x 2 halves: the words of two rows, from one word of each of two columns.
fn turned_halves(left: u32, right: u32) -> vec2<u32> {
    return vec2((left & 0xffffu) | (right << 16u), (left >> 16u) | (right & 0xffff0000u));
}
