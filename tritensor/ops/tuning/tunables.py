"""Tunable kernels: each kernel that asks for a config, the class of its configs, those worth trying, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Space = Callable[[tuple[Any, ...], Any], Sequence[Any]]
Problem = Callable[[Any, tuple[Any, ...] | None], str]


def _no_problem(config: Any, key: tuple[Any, ...] | None) -> str:
    return ""


class Tunable(NamedTuple):
    """A kernel whose launches ask `config_of(name, key, default)`.

    kind: the class of its configs, a NamedTuple or int.
    space: `(key, default) -> configs` worth trying; the default need not be among them.
    problem: `(config, key) -> what is wrong` with a config, "" for nothing. The key is None where a config is checked for any.
    """

    name: str
    kind: type
    space: Space
    problem: Problem = _no_problem


known: dict[str, Tunable] = {}


def tunable(name: str, kind: type, space: Space, problem: Problem = _no_problem) -> None:
    """Declare that launches of `name` ask for a config. Called by the file that asks; one name may be declared by several files, alike."""
    known[name] = Tunable(name, kind, space, problem)


ELEMENTS = 1 << 20  # of one tile at most: Triton compiles no larger one


def tile_problem(*sides: int) -> str:
    """Complaints about a tile of such sides: more elements than Triton compiles."""
    held = math.prod(sides)
    return f"a tile of {' x '.join(map(str, sides))} has {held} elements; at most {ELEMENTS}" if held > ELEMENTS else ""


def powers(config: Any, key: tuple[Any, ...] | None = None, others: Sequence[str] = ()) -> str:
    """Complaints about a config whose fields, but for `others` and flags, must be powers of two, none above what a tile may hold."""
    named = config._asdict() if hasattr(config, "_asdict") else {"its value": config}
    for field, n in named.items():
        if field in others or isinstance(n, bool):
            continue
        if not isinstance(n, int) or n < 1 or n & (n - 1):
            return f"{field} is {n!r}; a power of two is needed"
        if n > ELEMENTS:
            return f"{field} is {n}; a tile has at most {ELEMENTS} elements"
    if named.get("warps", 1) > 32:
        return f"warps is {named['warps']}; a program has at most 32"
    return ""
