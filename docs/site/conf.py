"""Sphinx's configuration of the site: `make docs` builds docs/ to build/site/, without the network."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import tritensor as tt  # noqa: E402
from docs.site import links, offline, reference  # noqa: E402

offline.guard()

project = "tritensor"
author = "The tritensor authors"
copyright = "The tritensor authors, Apache-2.0"
version = release = tt.__version__

extensions = ["myst_nb"]
exclude_patterns = ["site", "differences.md", "**.ipynb_checkpoints"]
nitpicky = True
# Annotations name types of Python, of numpy, and aliases that are no public names: they stand as words.
nitpick_ignore_regex = [("py:class", r".*")]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# `python -m docs.site` runs the notebooks, compares them with those that are stored, and says where the new ones are.
NOTEBOOKS = os.environ.get("TRITENSOR_NOTEBOOKS")
nb_execution_mode = "off" if NOTEBOOKS else "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True  # what a notebook writes stays out of docs/
nb_execution_timeout = 120
nb_execution_show_tb = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # no script of another host

python_maximum_signature_line_length = 90
python_display_short_literal_types = True
toc_object_entries = False
smartquotes = False  # "val_loss" is code as often as not

html_theme = "furo"
pygments_dark_style = "monokai"  # furo's own underlines modules, as if they were links
html_title = f"tritensor {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_logo = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False


def _read(app: Any, name: str, source: list[str]) -> None:
    """Fill in what a page takes of other files, and turn its links."""
    path = Path(str(app.env.doc2path(name)))
    if path.suffix == ".ipynb" and NOTEBOOKS:
        source[0] = (Path(NOTEBOOKS) / path.name).read_text()
    if path.suffix != ".md":
        return
    for file in links.sources(source[0]):
        app.env.note_dependency(str(file))
    text = links.on_the_site(links.filled(source[0]), path.parent)
    source[0] = text + links.contents(source[0], set(app.env.found_docs) | {"reference/index"}) if name == "index" else text


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's door."""
    logging.getLogger("traitlets").setLevel(logging.WARNING)  # nbclient tells of each notebook that it starts
    reference.write()
    app.connect("source-read", _read)
    app.connect("env-get-outdated", lambda *_: ["index"])  # it names all pages, so a page more or less changes it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
