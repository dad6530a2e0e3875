// shifted_grid: contiguous target rows from source elements at a stride of 1, 2 or 4, forwards or reversed, of 1 to 8
// bytes, on GPUs, in blocks of 16 bytes read at any byte offset. Writes whole blocks only; row_ends writes the blocks
// that rows share.
//
//   workgroup g, invocation i  ->  `units` blocks of tile g of a plane (see Tile); column 0 is a row's first whole one

override distance: u32 = 1u; // absolute source stride of a row: 1, 2 or 4 elements

const units: u32 = 4u; // blocks per invocation, all loaded before the first store

@compute @workgroup_size(workgroup_size)
fn shifted_grid(own: Invocation) {
    let group = group_number(own.group, own.groups);
    if (group >= copy.count) {
        return;
    }
    let before = copy.rank - 2u;
    let tile = find_tile(group);
    let row = tile.row + own_row(own.index);
    let column = tile.column + own_column(own.index);
    if (row >= size_of(before)) {
        return;
    }
    let place = Place(tile.place.source_element + row * source_stride_of(before),
                      tile.place.target_element + row * target_stride_of(before));
    let extent = find_row_extent(place);
    let blocks = extent.stop_unit - extent.whole_unit;
    let lowest = find_source(place, extent.whole_unit, distance); // lowest source byte of the row's first whole block
    let offset = lowest % 16u;
    let ahead = copy.ahead_columns;
    let step = select(0u - distance, distance, is_forwards()); // source blocks per target block, modulo 2^32
    let lowest_block = lowest / 16u + column * step;
    let target_block = extent.whole_unit + column;
    var held: array<vec4<u32>, units>;
    for (var k = 0u; k < units; k++) {
        // Blocks outside of the row are not stored.
        held[k] = read_from(lowest_block + k * ahead * step, offset, distance);
    }
    for (var k = 0u; k < units; k++) {
        if (column + k * ahead < blocks) {
            target_blocks[target_block + k * ahead] = held[k];
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

// The target range of a row, in elements or bytes as the kernel defines, and the units that it covers.
struct Extent {
    start: u32,      // elements or bytes
    stop: u32,       // elements or bytes, exclusive
    first_unit: u32, // the unit that contains `start`
    whole_unit: u32, // the first unit that is wholly inside the row
    stop_unit: u32,  // one past the last unit that is wholly inside the row
}

fn find_extent(start: u32, size: u32, places_per_unit: u32) -> Extent {
    let stop = start + size;
    let whole_unit = (start + places_per_unit - 1u) / places_per_unit;
    return Extent(start, stop, start / places_per_unit, whole_unit, stop / places_per_unit);
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

// Decomposes a tile number: along the columns first, then down the rows, then from plane to plane.
struct TileNumber {
    column: u32, // tile index along the columns
    row: u32,    // tile index down the rows
    plane: u32,  // plane index
}

fn find_tile_number(number: u32) -> TileNumber {
    let rows = divide(number, copy.pieces_multiplier, copy.pieces_shift);
    let planes = divide(rows, copy.row_tiles_multiplier, copy.row_tiles_shift);
    return TileNumber(number - rows * copy.pieces, rows - planes * copy.row_tiles, planes);
}

// The tile of a workgroup, of which each invocation copies several units.
//
//   workgroup g   ->  tile g of a plane of the last two dimensions: the last is columns, the one before it rows
//   invocation i  ->  unit k < units: column i % 2^across_shift + k * ahead_columns,
//                     row i / 2^across_shift + k * ahead_rows of the tile
//
// Divisions are uniform across a workgroup, and consecutive invocations access consecutive units.
struct Tile {
    place: Place, // of the plane's first unit
    column: u32,  // first column
    row: u32,     // first row
}

fn tile_columns() -> u32 {
    return max(copy.ahead_columns * units, 1u << copy.across_shift);
}

fn tile_rows() -> u32 {
    return max(copy.ahead_rows * units, workgroup_size >> copy.across_shift);
}

fn find_tile(group: u32) -> Tile {
    let number = find_tile_number(group);
    let column = number.column * tile_columns();
    let row = number.row * tile_rows();
    return Tile(find_place(number.plane, copy.rank - 2u), column, row);
}

// Columns and rows from the first unit of a tile to the first unit of an invocation.
fn own_column(index: u32) -> u32 {
    return index & ((1u << copy.across_shift) - 1u);
}

fn own_row(index: u32) -> u32 {
    return index >> copy.across_shift;
}

override whole_words: bool = false; // whether all elements are whole words, so that no shift within a word is needed

@group(0) @binding(1) var<storage, read> source_blocks: array<vec4<u32>>;

@group(0) @binding(2) var<storage, read_write> target_blocks: array<vec4<u32>>;

// The 16 bytes at byte `offset`, 0 to 15, of two consecutive blocks.
fn join(low: vec4<u32>, high: vec4<u32>, offset: u32) -> vec4<u32> {
    let by_two = select(low, vec4(low.zw, high.xy), (offset & 8u) != 0u);
    let beyond = select(high.xy, high.zw, (offset & 8u) != 0u);
    let words = select(by_two, vec4(by_two.yzw, beyond.x), (offset & 4u) != 0u);
    if (whole_words) {
        return words;
    }
    let next = vec4(words.yzw, select(beyond.x, beyond.y, (offset & 4u) != 0u));
    let bits = vec4(offset % 4u * 8u);
    return select((words >> bits) | (next << ((32u - bits) % 32u)), words, bits == vec4(0u));
}

// A block of the source. 32-bit byte offsets address 2^28 blocks: numbers of blocks before the binding are taken modulo
// 2^28, so that the next block after the last is block 0.
fn source_block(number: u32) -> vec4<u32> {
    return source_blocks[number & 0x0fffffffu]; // may be beyond the binding
}

// Reverses the elements, of 1 to 16 bytes, of a block.
fn turn(block: vec4<u32>, element_bytes: u32) -> vec4<u32> {
    let words = select(block.wzyx, block.zwxy, element_bytes == 8u);
    if (whole_words) {
        return select(words, block, element_bytes == 16u);
    }
    let half = vec4(select(0u, 16u, element_bytes < 4u)); // bits
    let halves = (words >> half) | (words << half);
    let bytes = ((halves >> vec4(8u)) & vec4(0x00ff00ffu)) | ((halves << vec4(8u)) & vec4(0xff00ff00u));
    return select(halves, bytes, element_bytes == 1u);
}

// Every second element of two consecutive blocks.
fn halve(low: vec4<u32>, high: vec4<u32>, element_bytes: u32) -> vec4<u32> {
    if (whole_words) {
        return select(vec4(low.xz, high.xz), vec4(low.xy, high.xy), element_bytes == 8u);
    }
    if (element_bytes == 8u) {
        return vec4(low.xy, high.xy);
    }
    if (element_bytes == 4u) {
        return vec4(low.xz, high.xz);
    }
    var first = vec4(low.xz, high.xz);
    var second = vec4(low.yw, high.yw);
    if (element_bytes == 1u) {
        first = (first & vec4(0xffu)) | ((first >> vec4(8u)) & vec4(0xff00u));
        second = (second & vec4(0xffu)) | ((second >> vec4(8u)) & vec4(0xff00u));
    }
    return (first & vec4(0xffffu)) | (second << vec4(16u));
}

// Gathers a block of elements at a stride of `distance`; the first is at byte `offset`, 0 to 15, of block `block`.
fn gather_step(block: u32, offset: u32, distance: u32, element_bytes: u32) -> vec4<u32> {
    let block_0 = source_block(block);
    let block_1 = source_block(block + 1u);
    let block_2 = source_block(block + 2u);
    let pair = halve(join(block_0, block_1, offset), join(block_1, block_2, offset), element_bytes);
    if (distance == 2u) {
        return pair;
    }
    let block_3 = source_block(block + 3u);
    let block_4 = source_block(block + 4u);
    let next = halve(join(block_2, block_3, offset), join(block_3, block_4, offset), element_bytes);
    return halve(pair, next, element_bytes);
}

override way: i32 = 0; // sign of the last source stride: 1 or -1; 0: read from the parameters

fn is_forwards() -> bool {
    let last = copy.rank - 1u;
    return way > 0 || (way == 0 && bitcast<i32>(source_stride_of(last)) > 0);
}

// The elements of a block in the order of the target row.
fn in_order(block: vec4<u32>) -> vec4<u32> {
    if (way > 0) {
        return block;
    }
    return select(turn(block, copy.element_bytes), block, is_forwards());
}

// The target range of a row, in bytes and blocks.
fn find_row_extent(place: Place) -> Extent {
    let last = copy.rank - 1u;
    let size_bytes = size_of(last) * copy.element_bytes;
    return find_extent(place.target_element * copy.element_bytes, size_bytes, 16u);
}

// The lowest source byte of target block `block` of a row.
fn find_source(place: Place, block: u32, distance: u32) -> u32 {
    let ahead = (block * 16u - place.target_element * copy.element_bytes) * distance; // modulo 2^32
    let source = place.source_element * copy.element_bytes;
    return select(source - ahead - (16u - copy.element_bytes) * distance, source + ahead, is_forwards());
}

// Reads a block of a row whose lowest source byte is at byte `offset`, 0 to 15, of block `block`. Loads may extend past
// the end of the row and before the binding.
fn read_from(block: u32, offset: u32, distance: u32) -> vec4<u32> {
    if (distance == 1u) {
        let far = source_block(block + u32(offset != 0u));
        return in_order(join(source_block(block), far, offset));
    }
    return in_order(gather_step(block, offset, distance, copy.element_bytes));
}
