// tiles: transposes elements of 4, 8 and 16 bytes through workgroup memory. The target is contiguous along the last
// dimension (columns), the source along the one before it (rows).
//
//   workgroup g   ->  tile g of `each` x `each` elements of these two dimensions, at one index of all others
//   invocation i  ->  elements i, i + workgroup_size, ... of the tile: loaded in source order, stored in target order
//
// Repeats: surplus workgroups write the last tile again

override element_bytes: u32 = 4u; // bytes per element: 4, 8 or 16
override each: u32 = 16u;         // elements per tile side

@group(0) @binding(0) var<uniform> copy: Copy;
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
    // Uniform divisions: by the multipliers of find_tile_number AMD takes 1.13 to 1.26 times as long.
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
