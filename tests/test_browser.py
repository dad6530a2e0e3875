"""The package in a browser tab: Chromium runs it by Pyodide, on SwiftShader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tab
from pages import README, blocks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(bool(tab.missing()), reason=tab.missing() or "nothing is missing"),
]


@pytest.fixture(scope="module")
def page() -> Iterator[tab.Tab]:
    with tab.opened() as opened:
        yield opened


def test_ten_lines_of_the_readme_give_their_results(page: tab.Tab) -> None:
    lines = blocks(README, "python")[0].text.splitlines()
    shown = [line.partition("# -> ") for line in lines if "# -> " in line]
    assert len(shown) > 4
    checked = [
        f"assert np.array_equal({line.partition('  #')[0]}, {line.partition('# -> ')[2]})"
        if "# -> " in line
        else line
        for line in lines
    ]
    assert page.run("\n".join(checked)).startswith("copy: 24 B, uint8 (4, 6)\n")
    assert page.browser.errors == []
