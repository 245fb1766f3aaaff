"""Settings of the documentation: ``python -m sphinx -W -b html docs docs/_build``, without network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import admiss  # noqa: E402

project = "admiss"
author = "The admiss developers"
release = version = admiss.__version__
copyright = "the admiss developers"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
    "command_help",
    "full_parameters",
    "plain_docstrings",
    "stored_figures",
    "stored_results",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery", "paper.md"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
root_doc = "index"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_attributes_as_param_list = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "image_srcset": ["2x"],
    "show_signature": False,
    "capture_repr": (),
    "write_computation_times": False,
    "min_reported_time": 3600,
}

html_theme = "pydata_sphinx_theme"
html_title = f"admiss {release}"
html_static_path = ["_static"]
html_css_files = ["admiss.css"]
html_js_files = ["copy.js"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_nav_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
