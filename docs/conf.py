"""Settings of the site: Sphinx builds it from these pages, the README and the docstrings."""

import wgslice

project = "wgslice"
author = "the wgslice contributors"
version = release = wgslice.__version__
html_title = f"wgslice {release}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
templates_path = ["_templates"]
myst_heading_anchors = 3  # as GitHub makes them, so that links work on both
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output of commands

default_role = "literal"
autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True, "inherited-members": False}
autodoc_typehints = "none"  # the docstrings say types, shapes and units
napoleon_google_docstring = False
napoleon_use_ivar = True  # an "Attributes" section beside documented properties
suppress_warnings = ["ref.python"]  # "shape" in the type of a parameter is a word, and several attributes

html_theme = "pydata_sphinx_theme"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": False, "show_prev_next": False}
