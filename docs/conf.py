"""Settings of the site: Sphinx builds it from these pages, the README and the docstrings."""

from collections.abc import Iterator
from typing import Any

from pygments.formatters import HtmlFormatter
from sphinx.highlighting import PygmentsBridge

import wgslice

project = "wgslice"
author = "the wgslice contributors"
version = release = wgslice.__version__
html_title = f"wgslice {release}"
html_theme = "furo"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
templates_path = ["_templates"]
html_copy_source = False
html_show_copyright = False
html_static_path = ["static", "try/static", "gpu/static", "python/static"]
html_css_files = ["site.css"]
myst_heading_anchors = 3  # as GitHub makes them, so that links work on both
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output of commands
default_role = "literal"
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the docstrings say types, shapes and units
napoleon_google_docstring = False
napoleon_use_ivar = True  # an "Attributes" section beside documented properties
suppress_warnings = ["ref.python"]  # "shape" in the type of a parameter is a word, and several attributes


def hide_signature(_: object, kind: str, __: str, documented: Any, *___: object) -> tuple[str, None] | None:
    """Hide the constructor of a class that users get from a function: its parameters are not documented."""
    if kind == "class" and "Parameters\n" not in (documented.__doc__ or ""):
        return "", None
    return None


class LinesFormatter(HtmlFormatter[str]):
    """Makes an element of each line of a block, which the style sheet indents where it wraps."""

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Wrap the block around its lines; a part that is no line has the number 0."""
        lines = ((kind, f'<span class="line">{text}</span>' if kind else text) for kind, text in source)
        return super().wrap(lines)


def setup(app: Any) -> None:
    """Connect to Sphinx."""
    PygmentsBridge.html_formatter = LinesFormatter
    app.connect("autodoc-process-signature", hide_signature)
