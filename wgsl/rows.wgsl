// rows: elements of whole words in long innermost runs. The grid is the shape: two dimensions take no division,
// and more take little.
//
//   workgroup (x, y, z)  ->  row z * groups.y + y of the dimensions before the last, and its x-th block of
//                            workgroup_size * elements_each elements
//   invocation           ->  elements_each elements of that block, `step` apart: 1 where a thread owns a piece of
//                            memory, workgroup_size where neighbours take neighbouring elements

struct Copy {
    sizes: array<vec4<u32>, 2>,          // elements; dimension d is sizes[d / 4][d % 4]
    source_strides: array<vec4<u32>, 2>, // elements, modulo 2^32: a negative stride wraps around
    target_strides: array<vec4<u32>, 2>, // elements
    multipliers: array<vec4<u32>, 2>,    // of each dimension's divisor, for kernels that must not divide
    shifts: array<vec4<u32>, 2>,         // bits, likewise
    source_offset: u32,                  // elements, from the start of the binding
    target_offset: u32,                  // elements, from the start of the binding
    rank: u32,                           // dimensions in use, the first ones
    count: u32,                          // rows
}

override workgroup_size: u32; // invocations
override element_nbytes: u32; // bytes an element: 4, 8 or 16
override elements_each: u32;  // elements an invocation
override step: u32;           // elements between two of an invocation

@group(0) @binding(0) var<uniform> copy: Copy;
@group(0) @binding(1) var<storage, read> source_words: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<u32>;

// The upper half of the 64-bit product.
fn multiply_high(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let carry = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (carry >> 16u);
}

// n divided by dimension d's divisor, for n < 2^31.
fn divide(n: u32, i: u32, j: u32) -> u32 {
    return (multiply_high(n, copy.multipliers[i][j]) + n) >> copy.shifts[i][j];
}

fn copy_element(source_element: u32, target_element: u32) {
    let words_per_element = element_nbytes / 4u;
    for (var i = 0u; i < words_per_element; i++) {
        let word = source_words[source_element * words_per_element + i];
        target_words[target_element * words_per_element + i] = word;
    }
}

@compute @workgroup_size(workgroup_size)
fn rows(@builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group.z * groups.y + group.y;
    let last = copy.rank - 1u;
    let size = copy.sizes[last / 4u][last % 4u];
    let first = group.x * workgroup_size * elements_each + select(lane, lane * elements_each, step == 1u);
    if (row >= copy.count || first >= size) {
        return;
    }
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let target_stride = copy.target_strides[last / 4u][last % 4u];
    var source_element = copy.source_offset + first * source_stride;
    var target_element = copy.target_offset + first * target_stride;
    var rest = row;
    for (var d = last; d > 0u; d--) {
        let i = (d - 1u) / 4u;
        let j = (d - 1u) % 4u;
        var c = rest;
        if (d > 1u) {
            rest = divide(rest, i, j);
            c -= rest * copy.sizes[i][j];
        }
        source_element += c * copy.source_strides[i][j];
        target_element += c * copy.target_strides[i][j];
    }
    let source_step = source_stride * step;
    let target_step = target_stride * step;
    if (first + (elements_each - 1u) * step < size) {
        for (var k = 0u; k < elements_each; k++) {
            copy_element(source_element + k * source_step, target_element + k * target_step);
        }
    } else {
        for (var k = 0u; first + k * step < size; k++) {
            copy_element(source_element + k * source_step, target_element + k * target_step);
        }
    }
}
