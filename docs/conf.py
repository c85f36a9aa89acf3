"""The site of the documentation: `make docs` builds it. Nothing is fetched while it is built or read."""

import sys
from pathlib import Path

from quercus import __version__

sys.path.insert(0, str(Path(__file__).resolve().parent / "extensions"))

project = "Quercus"
author = "the authors of Quercus"
project_copyright = "the authors of Quercus, Apache License 2.0"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
    "reference_tables",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["extensions", "pictures/*.py"]
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["quercus.css"]
html_theme = "furo"
html_title = "Quercus"
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
smartquotes_action = "qe"  # not the hyphens of flags
suppress_warnings = [
    "myst.xref_missing"
]  # tests/unit/test_docs.py checks links, also those out of this folder
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
nitpicky = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
