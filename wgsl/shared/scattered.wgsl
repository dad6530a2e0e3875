// scattered: which elements are written at indices.
//
// An index that is out of range writes nothing, nor does one whose place a later one claims.

override contested: bool = false; // whether two indices may name one element

@group(0) @binding(4) var<storage, read> winners: array<u32>; // the greatest claim on each place

fn is_written(element: IndexedElement) -> bool {
    if (contested && element.inside) {
        return element.is_one && winners[element.claim] == element.number + 1u;
    }
    return element.is_one && element.inside;
}
