// pairs: rows of the last dimension, or, where that is short, of the last two.

// A row: runs of the last dimension, as many as the dimension before has, or one.
struct Runs {
    dimensions: u32,    // before those of a row
    run: u32,           // elements a run
    size: u32,          // elements a row
    source_stride: u32, // elements from one of a run to the next, modulo 2^32
    target_stride: u32, // elements from one of a run to the next
    source_carry: u32,  // elements more from the last of a run to the first of the next, modulo 2^32; 0 of one run
    target_carry: u32,  // elements more from the last of a run to the first of the next; 0 of one run
}

fn find_runs() -> Runs {
    let last = copy.rank - 1u;
    let before = last - copy.paired; // the other dimension of a pair
    let run = copy.sizes[last / 4u][last % 4u];
    let size = run * select(1u, copy.sizes[before / 4u][before % 4u], copy.paired == 1u);
    let source_stride = copy.source_strides[last / 4u][last % 4u];
    let target_stride = copy.target_strides[last / 4u][last % 4u];
    let source_carry = copy.source_strides[before / 4u][before % 4u] - run * source_stride;
    let target_carry = copy.target_strides[before / 4u][before % 4u] - run * target_stride;
    return Runs(before, run, size, source_stride, target_stride,
                copy.paired * source_carry, copy.paired * target_carry);
}

// Runs that end before a row's c-th element.
fn runs_before(c: u32) -> u32 {
    let last = copy.rank - 1u;
    return copy.paired * divide(c, copy.multipliers[last / 4u][last % 4u], copy.shifts[last / 4u][last % 4u]);
}
