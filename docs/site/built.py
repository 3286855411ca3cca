"""Questions to a built site: that it loads nothing from elsewhere, leads nowhere that is not there, and left no markup standing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

# What a browser fetches by itself. A link that a reader may follow, <a href>, is none of them.
_FETCHED = dict.fromkeys(("script", "img", "iframe", "source", "video", "audio", "embed"), "src") | {"object": "data"}
_LINKED = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}  # kinds of <link> that a browser fetches
_STYLE = re.compile(r"""url\(\s*['"]?(?!data:|#)([^'")]+)|@import\s+['"]([^'"]+)""")
_MARKUP = re.compile(
    r"\]\((?:\.\./)?[\w/.-]+\.(?:md|ipynb|html)\b|:py:\w+:`|^\.\. \w[\w:-]+::|\{\w+\}`|<!-- (?:all|section) of", re.MULTILINE
)


class Read(HTMLParser):
    """One page: what it fetches, where its links lead, its anchors, its words outside of code."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.words: list[str] = []
        self._closed: list[str] = []  # elements whose words are code
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element fetches, links to, and is called."""
        given = {k: v or "" for k, v in attrs}
        if tag in _FETCHED and given.get(_FETCHED[tag]):
            self.fetched.append(given[_FETCHED[tag]])
        if tag == "link" and _LINKED & set(given.get("rel", "").split()):
            self.fetched.append(given.get("href", ""))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get("id"):
            self.anchors.add(given["id"])
        if tag in ("pre", "code", "script", "style"):
            self._closed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Words are words again."""
        if self._closed and self._closed[-1] == tag:
            self._closed.pop()

    def handle_data(self, data: str) -> None:
        """Words."""
        if not self._closed:
            self.words.append(data)


def pages(site: Path) -> dict[str, Read]:
    """{path in the site: page}."""
    return {p.relative_to(site).as_posix(): Read(p.read_text()) for p in sorted(site.rglob("*.html")) if "_static" not in p.parts}


def is_outside(target: str) -> bool:
    """Whether a browser would ask another host for it."""
    return bool(re.match(r"(?:\w+:)?//", target))


def outside(site: Path, read: dict[str, Read]) -> Iterator[str]:
    """What pages and style sheets fetch from other hosts."""
    for name, page in read.items():
        yield from (f"{name} fetches {t}" for t in page.fetched if is_outside(t))
    for sheet in sorted(site.rglob("*.css")):
        for m in _STYLE.finditer(sheet.read_text()):
            target = m[1] or m[2]
            if is_outside(target):
                yield f"{sheet.relative_to(site)} fetches {target}"


def broken(site: Path, read: dict[str, Read]) -> Iterator[str]:
    """Links and pictures of pages that lead to no file, or to no anchor in one."""
    for name, page in read.items():
        for target in [*page.links, *page.fetched]:
            if re.match(r"\w+:|//", target):
                continue
            path, _, anchor = target.partition("#")
            file = (site / name).parent / unquote(path.partition("?")[0]) if path else site / name
            if not file.exists():
                yield f"{name} leads to {target}, which is not there"
            elif anchor and file.suffix == ".html":
                other = read.get(file.resolve().relative_to(site.resolve()).as_posix())
                if other is not None and unquote(anchor) not in other.anchors:
                    yield f"{name} leads to {target}: {path or 'the page'} has no such anchor"


def reached(read: dict[str, Read], start: str = "index.html") -> set[str]:
    """The pages that links lead to from the first."""
    found, left = {start}, [start]
    while left:
        name = left.pop()
        for target in read[name].links:
            path = target.partition("#")[0]
            if not path or re.match(r"\w+:|//", path):
                continue
            there = (Path("/") / name).parent.joinpath(unquote(path)).resolve().relative_to("/").as_posix()
            if there in read and there not in found:
                found.add(there)
                left.append(there)
    return found


def markup(read: dict[str, Read]) -> Iterator[str]:
    """Markup that was not understood and stands on a page as it was written."""
    for name, page in read.items():
        for m in _MARKUP.finditer("\n".join(page.words)):
            yield f"{name} shows {m[0]!r}"


def complaints(site: Path) -> list[str]:
    """A line for everything that is wrong with a built site."""
    read = pages(site)
    lost = sorted(set(read) - reached(read) - {"genindex.html", "search.html", "py-modindex.html"})
    found = [*outside(site, read), *broken(site, read), *markup(read), *(f"{name}: no link leads there" for name in lost)]
    if not (site / "searchindex.js").exists():
        found.append("searchindex.js is missing: the search would find nothing")
    return found
