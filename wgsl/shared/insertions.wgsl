// insertions: which elements, rows and blocks of windows are written into a tensor, where windows may overlap.

override contested: bool = false; // whether windows may overlap
override in_parts: bool = false;  // whether they may in parts of rows, so that rows claim as claim_rows says

@group(0) @binding(5) var<storage, read> winners: array<u32>; // the greatest claim on each index, or block

// Whether a window is the last one that writes the index of a claim.
fn wins(claim: u32, window: u32) -> bool {
    if (contested) {
        return winners[claim] == copy.claim_base + window;
    }
    return true;
}
