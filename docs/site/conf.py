"""The settings of the documentation site: ``make docs`` builds it from the pages as they stand in the repository."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from nlp_retrieval import __version__  # noqa: E402

project = "nlp_retrieval"
release = version = __version__
copyright = "the authors of nlp_retrieval"  # noqa: A001
language = "en"
smartquotes = False  # they make one dash of two, and options have two

root_doc = "docs/site/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md", "bench/[A-Z]*.md"]
exclude_patterns = [
    ".*",
    "*.egg-info",
    "build",
    "nlp_retrieval",
    "notebooks",
    "tests",
    "demo-output",
    "indexes",
    "runs",
    "wandb",
]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "reference"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
copybutton_exclude = ".linenos, .gp, .go"

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_inherit_docstrings = False
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"
highlight_language = "text"

html_theme = "furo"
html_title = f"nlp_retrieval {release}"
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_additional_pages = {"index": "to_home.html"}
templates_path = ["templates"]
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"top_of_page_buttons": []}  # there is no address of the sources to lead to
