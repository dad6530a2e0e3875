// claims: which of windows that may overlap has the last word, as claim_windows has noted it.

override contested: bool; // whether windows may overlap

@group(0) @binding(5) var<storage, read> winners: array<u32>; // the greatest claim on each index

// Whether a window is the last one that has the index of a claim.
fn wins(claim: u32, window: u32) -> bool {
    if (contested) {
        return winners[claim] == copy.claim_base + window;
    }
    return true;
}
