"""What work costs on adapters, as far as it was measured or is known: used until it is measured there."""

from __future__ import annotations

from wgslice.plans.costs import Costs, Work

__all__ = ["GPUS", "LAVAPIPE"]

PATTERNS = ("beside", "near", "far")


def made(kernel, widths, rate, inv, paired=(False,), patterns=PATTERNS):
    out = {}
    for width in widths:
        for pair in paired:
            for pattern in patterns or ("",):
                name = " ".join(filter(None, [kernel, str(width), "paired" * pair, pattern]))
                out[name] = Work(inv, rate)
    return out


WORKS = {
    **made("slice1", (1, 2, 4, 8, 16), 0.1e9, 0),
    **made("rows", (4, 8), 1e9, 1e-9, (False, True)),
    **made("wide_rows", (16,), 2e9, 1e-9),
    **made("shifted_rows", (1, 2, 4, 8), 2e9, 1e-9),
    **made("narrow_rows", (1, 2), 0.8e9, 1e-9, (False, True)),
    **made("narrow_runs", (1, 2), 0.6e9, 1e-9),
    **made("tiles", (4, 8, 16), 0.1e9, 1e-9, patterns=()),
    **made("wide_tiles", (1, 2, 4, 8, 16), 0.1e9, 1e-9, patterns=()),
    **made("pixels", (1, 2), 0.1e9, 1e-9, patterns=()),
    **made("row_ends", (1, 2, 4, 8), 0.3e9, 1e-9, patterns=()),
    **made("narrow_ends", (1, 2), 0.3e9, 1e-9, patterns=()),
    **made("word_grid", (4,), 0.5e9, 1e-9),
    **made("pair_grid", (8,), 0.5e9, 1e-9),
    **made("wide_grid", (16,), 0.5e9, 1e-9),
    **made("shifted_grid", (1, 2, 4, 8), 0.5e9, 1e-9),
    **made("window_rows", (1, 2, 4, 8, 16), 1e9, 1e-9, patterns=()),
    **made("window_words", (1, 2), 0.3e9, 1e-9, patterns=()),
    **made("extract_windows", (1, 2, 4, 8, 16), 0.1e9, 1e-9, patterns=()),
}
LAVAPIPE = Costs("guess", 100e-6, 30e-6, 2.3e-6, 8e9, 10e9, WORKS)
GPUS = Costs("guess", 20e-6, 5e-6, 3e-6, 1000e9, 1000e9, WORKS)
