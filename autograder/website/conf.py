"""Settings of Sphinx for the site."""

from pathlib import Path

project = html_title = "conv2gpt"
extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx.ext.mathjax",
    "sphinx.ext.autodoc",
    "autograder.website.plain_docstrings",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # as on GitHub
nb_execution_mode = "off"  # labs are previews
autodoc_typehints_format = "short"
add_module_names = False
highlight_language = "text"
html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # browsers refuse to fetch summaries from files
mathjax_path = "mathjax/tex-svg.js"
