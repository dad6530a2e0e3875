// shifted_rows: rows of neighbours that the source has beside each other, or 2 or 4 elements apart, forwards or
// backwards, of any width below 16 bytes, in blocks of 16 bytes that may begin anywhere in the source.
//
//   invocation n  ->  piece n % pieces of row n / pieces
//   piece         ->  `each` neighbouring blocks of the row, or every pieces-th; why, says pieces.wgsl
//   first, last   ->  also the blocks that hold the row's ends
//
// Needs target strides in descending order, each larger than the reach of all dimensions after it, the last one 1,
// rows that hold `each` whole blocks, one at least, wherever they begin, and bindings of whole blocks.

override element_nbytes: u32; // bytes an element: 1, 2, 4 or 8
override source_step: i32;    // the last source stride, in elements: 1, 2, 4, -1, -2 or -4
override ragged: bool;        // whether some row begins or ends inside a block

// Elements in the order in which the row reads them.
fn in_order(block: vec4<u32>) -> vec4<u32> {
    if (source_step > 0) {
        return block;
    }
    return turn(block);
}

// The lowest source byte of a block of a row.
fn find_source(place: Place, block: u32) -> u32 {
    let distance = u32(abs(source_step));
    let ahead = (block * 16u - place.target_element * element_nbytes) * distance;
    let source = place.source_element * element_nbytes;
    return select(source - ahead - (16u - element_nbytes) * distance, source + ahead, source_step > 0);
}

// Every second element of two neighbours.
fn halve(low: vec4<u32>, high: vec4<u32>) -> vec4<u32> {
    if (element_nbytes == 8u) {
        return vec4(low.xy, high.xy);
    }
    if (element_nbytes == 4u) {
        return vec4(low.xz, high.xz);
    }
    var first = vec4(low.xz, high.xz);
    var second = vec4(low.yw, high.yw);
    if (element_nbytes == 1u) {
        first = (first & vec4(0xffu)) | ((first >> vec4(8u)) & vec4(0xff00u));
        second = (second & vec4(0xffu)) | ((second >> vec4(8u)) & vec4(0xff00u));
    }
    return (first & vec4(0xffffu)) | (second << vec4(16u));
}

// The block of a row whose lowest source byte is `source`. The last load may lie beyond what the block needs, and at
// an end of a row the first one before.
fn read_block(source: u32) -> vec4<u32> {
    let distance = u32(abs(source_step));
    if (distance == 1u) {
        return in_order(block_at(source));
    }
    let offset = source % 16u;
    let block_0 = block_after(source, 0u);
    let block_1 = block_after(source, 1u);
    let block_2 = block_after(source, 2u);
    let pair = halve(join(block_0, block_1, offset), join(block_1, block_2, offset));
    if (distance == 2u) {
        return in_order(pair);
    }
    let block_3 = block_after(source, 3u);
    let block_4 = block_after(source, 4u);
    return in_order(halve(pair, halve(join(block_2, block_3, offset), join(block_3, block_4, offset))));
}

// Blocks beside each other, of neighbours. Going along the row, every source block is the far one of a target block,
// and the near one of the next.
fn copy_neighbours(first: u32, source: u32) {
    let forwards = source_step > 0;
    let offset = source % 16u;
    let near_block = source / 16u + u32(!forwards && offset != 0u);
    let far_block = source / 16u + u32(forwards && offset != 0u);
    var near = source_blocks[near_block];
    for (var k = 0u; k < each; k++) {
        let far = source_blocks[far_block + select(0u - k, k, forwards)];
        let low = select(far, near, forwards && offset != 0u);
        target_blocks[first + k] = in_order(join(low, select(near, far, forwards), offset));
        near = far;
    }
}

// A block at an end of a row, together with what the next row has in it. Reads beyond a row are masked out.
fn copy_edge_block(block: u32, piece: Piece, extent: Extent, place: Place) {
    let next = find_place(piece.row + 1u, copy.rank - 1u);
    let from_next = mask_from(next.target_element * element_nbytes, block);
    let following = select(vec4(0u), from_next, piece.row + 1u < copy.count);
    let own_block = read_block(find_source(place, block));
    write_edge(block, own_block, mask_of(extent, block), read_block(find_source(next, block)), following);
}

@compute @workgroup_size(workgroup_size)
fn shifted_rows(own: Invocation) {
    let piece = find_piece(invocation_number(own.group, own.groups, own.lane), copy.count);
    if (is_left_over(piece, copy.count)) {
        return;
    }
    let last = copy.rank - 1u;
    let size_nbytes = copy.sizes[last / 4u][last % 4u] * element_nbytes;
    let place = find_place(piece.row, last);
    let extent = find_extent(place.target_element * element_nbytes, size_nbytes, 16u);
    let first = first_unit(piece, extent.whole_unit, extent.stop_unit);
    if (contiguous && (source_step == 1 || source_step == -1)) {
        copy_neighbours(first, find_source(place, first));
    } else {
        for (var k = 0u; k < each; k++) {
            let block = first + k * unit_step();
            if (contiguous || block < extent.stop_unit) {
                target_blocks[block] = read_block(find_source(place, block));
            }
        }
    }
    if (ragged) {
        let before = find_place(piece.row - 1u, last).target_element * element_nbytes + size_nbytes;
        let edges = find_edges(piece, extent, 16u, piece.row > 0u && before > extent.first_unit * 16u);
        var edge = edges.first;
        for (var left = edges.count; left > 0u; left--) {
            copy_edge_block(edge, piece, extent, place);
            edge = extent.stop_unit;
        }
    }
}
