"""Text that pages show on the site and on a code host alike: sections of other files filled in, links that leave docs/, the table of contents."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent

# Pages of the site that stand elsewhere in the repository, or under another name.
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/differences.md": "coming_from_pytorch.md",
}
# `<!-- all of ../X.md -->` or `<!-- section of ../X.md: Title -->`, up to `<!-- end -->`: a code host shows what stands between them.
_FILLED = re.compile(r"<!-- (all|section) of (\S+?)(?:: (.+?))? -->\n.*?<!-- end -->", re.DOTALL)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def section(text: str, title: str) -> str:
    """What stands below a heading, up to the next of its level or above. Raises ValueError where there is no such heading."""
    level, fenced, kept = 0, False, []
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        marks = len(line) - len(line.lstrip("#")) if not fenced and re.match(r"#+ ", line) else 0
        if level and marks and (marks <= level or level == 1):
            break
        if level:
            kept.append(line)
        elif marks and line.lstrip("# ") == title:
            level = marks
    if not level:
        raise ValueError(f"no heading {title!r}; sections are filled in by their titles, so mend the comment of the page that asks for it")
    return "\n".join(kept).strip() + "\n"


def filled(text: str) -> str:
    """A page of docs/ with what it takes of other files."""

    def take(m: re.Match[str]) -> str:
        file = (DOCS / m[2]).resolve()
        told = file.read_text()
        told = section(told, m[3]) if m[1] == "section" else re.sub(r"\A# .*\n", "", told)
        return rebased(told, file.parent, DOCS)

    return _FILLED.sub(take, text)


def sources(text: str) -> list[Path]:
    """The other files that a page takes something of."""
    return [(DOCS / m[2]).resolve() for m in _FILLED.finditer(text)]


def rebased(text: str, here: Path, there: Path) -> str:
    """Links and pictures of a text that stood in one folder, as they are from another. Code is left alone."""

    def link(m: re.Match[str]) -> str:
        target, mark, anchor = m[2].partition("#")
        if re.match(r"\w+:", target) or not target:
            return m[0]
        return f"{m[1]}({os.path.relpath(here / target, there)}{mark}{anchor})"

    return _outside_code(text, lambda t: _LINK.sub(link, t))


def _outside_code(text: str, change: object) -> str:
    """A text with a change applied to what is no code."""
    kept: list[str] = []

    def keep(m: re.Match[str]) -> str:
        kept.append(m[0])
        return f"\x00{len(kept) - 1}\x00"

    done = change(_CODE.sub(keep, text))  # type: ignore[operator]
    while "\x00" in done:  # code inside the words of a link
        done = re.sub("\x00(\\d+)\x00", lambda m: kept[int(m[1])], done)
    return str(done)


def on_the_site(text: str, folder: Path = DOCS) -> str:
    """Links of a page, with those to pages that the site shows under another name, and none to folders and sources outside of docs/."""

    def link(m: re.Match[str]) -> str:
        target, mark, anchor = m[2].partition("#")
        if re.match(r"\w+:", target) or not target or m[1].startswith("!"):
            return m[0]
        file = (folder / target).resolve()
        if not file.is_relative_to(ROOT) or not file.exists():
            return m[0]  # a broken link, which the build names
        inside = file.relative_to(ROOT).as_posix()
        words = "[]" if m[1][1:-1] in (target, inside) and not anchor else m[1]  # a path in place of words: the page's title stands there
        if inside in PLACES:
            return f"{words}({os.path.relpath(DOCS / PLACES[inside], folder)}{mark}{anchor})"
        if not file.is_relative_to(DOCS):  # a source: the site names it, and has no copy of it
            return m[1][1:-1] if "\x00" in m[1] else f"{m[1][1:-1]} (`{inside}`)"
        return f"{words}({m[2]})" if file.suffix == ".md" else m[0]

    return _outside_code(text, lambda t: _LINK.sub(link, t))


def contents(index: str, pages: set[str]) -> str:
    """The hidden toctrees of the index: a caption for each heading over a list of links, whose words stand in the side bar; the pages
    that no list names at the end."""
    listed: list[tuple[str, list[str]]] = []
    named: set[str] = set()
    for part in re.split(r"(?m)^## ", index)[1:]:
        title, _, body = part.partition("\n")
        found = re.findall(r"(?m)^(?:- |\d+\. )\[([^\]]+)\]\(([^)#]+)\)", body)
        targets = [(words, re.sub(r"\.(md|ipynb|rst)$", "", t)) for words, t in found]
        named |= {t for _, t in targets}
        listed.append((title, [f"{words} <{t}>" for words, t in targets if t in pages]))
    rest = sorted(pages - named - {"index"} - {p for p in pages if p.startswith("reference/")})
    listed = [(title, targets) for title, targets in [*listed, ("More", rest)] if targets]
    blocks = [f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(targets) + "\n```\n" for title, targets in listed]
    return "\n" + "\n".join(blocks)
