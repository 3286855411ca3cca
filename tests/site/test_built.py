"""Faults that the questions to a built site would show: each is planted in a small one. The real one is built by `make docs`."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import built, offline

ROOT = Path(__file__).resolve().parents[2]
INDEX = '<link rel="stylesheet" href="_static/a.css"><script src="s.js"></script><h1 id="top">T</h1><a href="sub/b.html#c">b</a> <a href="https://x.org">x</a>'
OTHER = '<h1 id="c">B</h1><a href="../index.html#top">back</a><pre>.. not::\n\n[a](b.md)</pre><code>{x}`</code>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in {
        "index.html": INDEX, "sub/b.html": OTHER, "_static/a.css": "p { background: url(data:image/png;base64,AA) }", "s.js": "", "searchindex.js": "",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_whole_site_has_no_complaints(site: Path) -> None:
    assert built.complaints(site) == []


@pytest.mark.parametrize(
    ("file", "added", "said"),
    [
        ("index.html", '<script src="https://cdn.example/x.js"></script>', "index.html fetches https://cdn.example/x.js"),
        ("index.html", '<script src="//cdn.example/x.js"></script>', "index.html fetches //cdn.example/x.js"),
        ("index.html", '<link rel="preconnect" href="https://fonts.example">', "index.html fetches https://fonts.example"),
        ("sub/b.html", '<img src="http://example.org/a.png">', "sub/b.html fetches http://example.org/a.png"),
        ("_static/a.css", "@import 'https://fonts.example/f.css';", "_static/a.css fetches https://fonts.example/f.css"),
        ("_static/a.css", "p { src: url(https://fonts.example/f.woff) }", "_static/a.css fetches https://fonts.example/f.woff"),
        ("index.html", '<a href="gone.html">g</a>', "index.html leads to gone.html, which is not there"),
        ("index.html", '<img src="gone.png">', "index.html leads to gone.png, which is not there"),
        ("index.html", '<a href="sub/b.html#d">d</a>', "index.html leads to sub/b.html#d: sub/b.html has no such anchor"),
        ("index.html", '<a href="#d">d</a>', "index.html leads to #d: the page has no such anchor"),
        ("sub/b.html", "<p>see [the page](../kernels.md)</p>", "sub/b.html shows '](../kernels.md'"),
        ("sub/b.html", "<p>:py:obj:`x`</p>", "sub/b.html shows ':py:obj:`'"),
        ("sub/b.html", "<p>\n.. note:: x</p>", "sub/b.html shows '.. note::'"),
        ("sub/b.html", "<p>{doc}`x`</p>", "sub/b.html shows '{doc}`'"),
        ("lost.html", "<h1>L</h1>", "lost.html: no link leads there"),
    ],
)  # fmt: skip
def test_a_fault_is_told(site: Path, file: str, added: str, said: str) -> None:
    path = site / file
    path.write_text((path.read_text() if path.exists() else "") + added)
    assert built.complaints(site) == [said]


def test_a_search_without_an_index_is_told(site: Path) -> None:
    (site / "searchindex.js").unlink()
    assert built.complaints(site) == ["searchindex.js is missing: the search would find nothing"]


def test_other_hosts_are_refused() -> None:
    for event, given in (
        ("socket.getaddrinfo", ("example.org", 443)),
        ("socket.gethostbyname", ("example.org",)),
        ("socket.connect", (None, ("93.184.216.34", 80))),
        ("socket.sendto", (None, ("8.8.8.8", 53))),
    ):
        with pytest.raises(ConnectionError, match="built without the network"):
            offline.refuse(event, given)
    offline.refuse("socket.connect", (None, ("127.0.0.1", 80)))
    offline.refuse("socket.connect", (None, "/run/a.sock"))
    offline.refuse("socket.getaddrinfo", (None, 80))
    offline.refuse("open", ("example.org",))


def test_the_guard_holds_in_a_process() -> None:
    code = "from docs.site import offline; offline.guard(); import urllib.request as u; u.urlopen('http://example.org', timeout=5)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "something asks for example.org" in done.stderr
    assert socket.socket is not None, "and this process is left alone"


def test_every_page_of_docs_is_in_the_site() -> None:
    """The index names it, or it stands under More; differences.md is filled into coming_from_pytorch.md."""
    from docs.site import links

    pages = {p.stem for p in links.DOCS.glob("*.md")} - {"index", "differences"} | {
        f"notebooks/{p.stem}" for p in links.DOCS.glob("notebooks/*.ipynb")
    }
    made = links.contents((links.DOCS / "index.md").read_text(), pages | {"index", "reference/index"})
    listed = {line.rpartition("<")[2].rstrip(">") for line in made.splitlines() if line and not line.startswith((":", "`"))}
    assert pages <= listed
    assert "reference/index" in listed
    assert "<!-- all of differences.md -->" in (links.DOCS / "coming_from_pytorch.md").read_text()


def test_pages_whose_sources_are_gone_are_swept_out(tmp_path: Path) -> None:
    import importlib

    for name in ("scripts.html", "gone.html", "search.html", "notebooks/01_tensors.html", "notebooks/06_gone.html", "_static/a.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    importlib.import_module("docs.site.__main__").sweep(tmp_path)
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.html")}
    assert left == {"scripts.html", "search.html", "notebooks/01_tensors.html", "_static/a.html"}
