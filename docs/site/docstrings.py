"""Docstrings as they are written here, plain text with `code` and a few headings, as reStructuredText.

Nothing of a docstring is markup but: backticks, paragraphs, lists of "- ", headings such as `Args:` over indented entries, examples of `>>>`, and
blocks indented behind "::". So `x * other` and `values_` mean what they say, and no docstring can break a page.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

# (name as it stands in backticks) -> the full name of what it means, or None.
Resolve = Callable[[str], str | None]

_SPECIAL = re.compile(r"([\\*`|_<>\[\]])")
_HEADING = re.compile(r"^[A-Z][\w ]*:$")
_ENTRY = re.compile(r"^(\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*): (.*)$", re.DOTALL)
_ERROR = re.compile(r"\b[A-Z]\w*Error\b")
_CALL = re.compile(r"^\w+(\([^()]*\))?: ")
_TITLES = {"Args": "Arguments"}


def escaped(text: str) -> str:
    """Text in which no character is markup."""
    return _SPECIAL.sub(r"\\\1", text)


def inline(text: str, resolve: Resolve) -> str:
    """A paragraph: its words escaped, what stands in backticks as code, with a link where it names something."""
    text = " ".join(text.split()).replace("``", "`")
    if text.count("`") % 2:
        return "\\ " + escaped(text)
    out = []
    for i, piece in enumerate(text.split("`")):
        if i % 2 == 0:
            out.append(_ERROR.sub(lambda m: _error(m[0], resolve), escaped(piece)))
        elif piece.strip():
            out.append("\\ " + code(piece.strip(), resolve) + "\\ ")
    return "\\ " + "".join(out)


def _error(name: str, resolve: Resolve) -> str:
    """An error of ours, said without backticks, as a link."""
    target = resolve(name)
    return f"\\ :py:exc:`{name} <{target}>`\\ " if target else name


def code(text: str, resolve: Resolve) -> str:
    """A word of code, linked where it is a public name."""
    target = resolve(text.removesuffix("()")) if re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", text) else None
    if target is not None:
        return f":py:obj:`{text} <{target}>`"
    return f"``{text}``"


def blocks(text: str) -> Iterator[list[str]]:
    """Lines between blank lines; what is indented below a line belongs to that line's block, blank lines inside it too."""
    block: list[str] = []
    for line in text.splitlines():
        # a blank line ends a block, unless what follows is still indented: that is seen when the next line comes
        if line.strip() and block and block[-1] == "" and not (line.startswith(" ") and _keeps(block)):
            yield _stripped(block)
            block = []
        block.append(line.rstrip())
    if _stripped(block):
        yield _stripped(block)


def _keeps(block: list[str]) -> bool:
    """Whether indented lines behind a blank one still belong to a block: below a heading, or behind "::"."""
    said = [b for b in block if b]
    return bool(said) and (bool(_HEADING.match(said[0])) or said[-1].endswith("::") or said[-1].startswith(" "))


def _stripped(block: list[str]) -> list[str]:
    while block and not block[-1]:
        block = block[:-1]
    return block


def rst(text: str, resolve: Resolve) -> list[str]:
    """The lines of a docstring in reStructuredText."""
    lines: list[str] = []
    for block in blocks(textwrap.dedent(text).strip("\n")):
        lines += [*_block(block, resolve), ""]
    return lines


def _block(block: list[str], resolve: Resolve) -> list[str]:
    """One block, and what stands indented in it."""
    if block[0].startswith(">>>"):
        return [".. code-block:: pycon", "", *("   " + b for b in block)]
    if _HEADING.match(block[0]) and len(block) > 1 and block[1].startswith(" "):
        return _section(block, resolve)
    if block[0].startswith(" "):
        return [".. code-block:: python", "", *textwrap.indent(textwrap.dedent("\n".join(block)), "   ").splitlines()]
    if len([b for b in block if _CALL.match(b)]) > 1 and _CALL.match(block[0]):  # a list of calls, a line or more for each
        items = re.split(r"(?m)^(?=\w+(?:\([^()]*\))?: )", "\n".join(block))
        return [f"- {code(i.partition(': ')[0], lambda _: None)}: {inline(i.partition(': ')[2], resolve)}" for i in items if i]
    at = next((i for i, b in enumerate(block) if b.startswith(("- ", ">>>")) or _opens_code(block, i)), len(block))
    before = " ".join(block[:at])
    said = [inline(before[:-1] if before.endswith("::") else before, resolve), ""] if at else []
    if at == len(block):
        return said
    if block[at].startswith("- "):
        return said + _bullets(block[at:], resolve)
    rest = _stripped(block[at:])
    while rest and not rest[0]:
        rest = rest[1:]
    return said + _block(rest, resolve)


def _opens_code(block: list[str], i: int) -> bool:
    """Whether line i begins the indented code that the line before announced by "::"."""
    before = [b for b in block[:i] if b]
    return bool(before) and before[-1].endswith("::") and (block[i] == "" or block[i].startswith(" "))


def _bullets(block: list[str], resolve: Resolve) -> list[str]:
    items = re.split(r"(?m)^- ", "\n".join(block))[1:]
    return [f"- {inline(item, resolve)}" for item in items]


def _section(block: list[str], resolve: Resolve) -> list[str]:
    """A heading and its entries: `name: text`, or plain text."""
    heading = block[0].removesuffix(":")
    body = textwrap.dedent("\n".join(block[1:])).splitlines()
    if heading in ("Example", "Examples"):
        return [f"*{heading}*", "", *rst("\n".join(body), resolve)]
    entries: list[str] = []
    for line in body:
        if (line.startswith(" ") and entries) or not line:
            entries[-1] += " " + line.strip()
        elif entries and not _ENTRY.match(line) and not _ENTRY.match(entries[-1]):
            entries[-1] += " " + line
        else:
            entries.append(line)
    lines = [f":{_TITLES.get(heading, heading)}:"]
    for entry in entries:
        found = _ENTRY.match(entry)
        if found:
            names = ", ".join(code(n, resolve if heading == "Raises" else lambda _: None) for n in found[1].split(", "))
            lines.append(f"   - {names}: {inline(found[2], resolve)}")
        else:
            lines.append(f"   - {inline(entry, resolve)}" if len(entries) > 1 else f"   {inline(entry, resolve)}")
    return lines


def summary(text: str, resolve: Resolve) -> str:
    """The first sentence, for a table."""
    lines = next(blocks(textwrap.dedent(text).strip("\n")), [""])
    announced = next((i for i, line in enumerate(lines) if line.endswith("::") or line.startswith((">>>", "- "))), len(lines))
    whole = " ".join([*lines[:announced], *(line.replace("::", ".") for line in lines[announced : announced + 1] if line.endswith("::"))])
    first = re.split(r"(?<=[^.\s][.!?])(?<!e\.g\.|i\.e\.)\s+(?=[A-Z`])", whole)[0]
    return inline(whole if first.count("`") % 2 else first, resolve)
