// shifted_grid: contiguous target rows from source elements at a stride of 1, 2 or 4, forwards or reversed, of 1 to 8
// bytes, on GPUs, in blocks of 16 bytes read at any byte offset. Writes whole blocks only; row_ends writes the blocks
// that rows share.
//
//   workgroup g, invocation i  ->  `units` blocks of tile g of a plane (see TileUnit); column 0 is the first whole one

@group(0) @binding(0) var<uniform> copy: Copy;

override distance: u32 = 1u; // absolute source stride of a row: 1, 2 or 4 elements

const units: u32 = 4u; // blocks per invocation, all loaded before the first store

@compute @workgroup_size(workgroup_size)
fn shifted_grid(own: Invocation) {
    let group = group_number(own.group, own.groups);
    if (group >= copy.count) {
        return;
    }
    let before = copy.rank - 2u;
    let unit = find_tile_unit(group, own.index);
    if (unit.row >= size_of(before)) {
        return;
    }
    let place = Place(unit.plane.source_element + unit.row * source_stride_of(before),
                      unit.plane.target_element + unit.row * target_stride_of(before));
    let extent = find_row_extent(place);
    let blocks = extent.stop_unit - extent.whole_unit;
    let lowest = find_source(place, extent.whole_unit, distance); // lowest source byte of the row's first whole block
    let offset = lowest % 16u;
    let ahead = copy.ahead_columns;
    let step = select(0u - distance, distance, is_forwards()); // source blocks per target block, modulo 2^32
    let lowest_block = lowest / 16u + unit.column * step;
    let target_block = extent.whole_unit + unit.column;
    var held: array<vec4<u32>, units>;
    for (var k = 0u; k < units; k++) {
        // Blocks outside of the row are not stored.
        held[k] = read_from(lowest_block + k * ahead * step, offset, distance);
    }
    for (var k = 0u; k < units; k++) {
        if (unit.column + k * ahead < blocks) {
            target_blocks[target_block + k * ahead] = held[k];
        }
    }
}
