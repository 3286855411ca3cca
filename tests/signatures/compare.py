"""Comparing two signatures by what a caller notices: names, order, defaults, and what may be given by keyword alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tritensor.tensor.public_api import arguments

EMPTY = inspect.Parameter.empty
STAR = inspect.Parameter.VAR_POSITIONAL
ONLY = (inspect.Parameter.POSITIONAL_ONLY,)
BY_PLACE = (*ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Given(str):
    """The argument of one name."""


def body_of(ours: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function behind the door, where there is one: other spellings of its keywords are understood."""
    at_the_door = isinstance(getattr(ours, "__signature__", None), arguments.PublicSignature)
    return ours.__wrapped__ if at_the_door else None  # type: ignore[attr-defined]


def bound(ours: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Which of our parameters get what. Raises TypeError where a call would."""
    body = body_of(ours)
    if body is None:
        return dict(inspect.signature(ours).bind(*args, **kwargs).arguments)
    added = set(inspect.signature(ours).parameters) - {arguments.public_name(body, p) for p in inspect.signature(body).parameters}
    own = {k: v for k, v in kwargs.items() if k not in added}
    try:
        found = inspect.signature(body).bind(*args, **own)
    except TypeError:
        again = arguments._rename_keywords(body, "f", args, own)
        if again is None:
            raise
        found = inspect.signature(body).bind(*again[0], **again[1])
    return {**found.arguments, **{k: v for k, v in kwargs.items() if k in added}}


def knows(ours: Callable[..., Any], name: str) -> bool:
    """Whether a parameter of that name may be given by keyword."""
    parameters = inspect.signature(ours).parameters
    if name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return True
    body = body_of(ours)
    return body is not None and arguments._find_parameter(body, name) is not None


def needed_by_name(p: inspect.Parameter | None) -> bool:
    """Whether a parameter has no default and is given by keyword alone."""
    return p is not None and p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is EMPTY


def _takes(ours: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call binds."""
    try:
        bound(ours, args, kwargs)
    except TypeError:
        return False
    return True


def differences(ours: Callable[..., Any], theirs: inspect.Signature, method: bool = False) -> set[str]:
    """What a caller who writes to PyTorch's signature would notice: `name=` is not known, the `default of name`, the `order`, a
    `call by place` or `by keyword` that is refused."""
    given = [p for p in theirs.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    if method and given and given[0].name in ("self", "input", "cls"):
        given = given[1:]
    lead: tuple[Any, ...] = (Given("self"),) if method else ()
    by_place = [p for p in given if p.kind in BY_PLACE]
    star = [p for p in given if p.kind is STAR]
    named = [p for p in given if p.kind not in (*ONLY, STAR) and not p.name.startswith("_")]
    unknown = {p.name for p in named if not knows(ours, p.name)}
    found = {f"{name}=" for name in unknown}
    if any(p.name in unknown and p.default is EMPTY for p in given):
        return found
    needed = {p.name: Given(p.name) for p in given if p.default is EMPTY and p.kind is not STAR}
    positional_only = tuple(needed.pop(p.name) for p in by_place if p.kind is inspect.Parameter.POSITIONAL_ONLY and p.name in needed)
    for p in named:
        if p.name not in unknown:
            alone, whole = {p.name: Given(p.name)}, {**needed, p.name: Given(p.name)}
            if not any(_takes(ours, (*lead, *positional_only), names) for names in ([alone, whole] if star else [whole])):
                found.add("call by keyword")
    leading = _leading(by_place, unknown)
    always = {p.name: Given(p.name) for p in given if needed_by_name(p) and needed_by_name(inspect.signature(ours).parameters.get(p.name))}
    try:
        places = bound(ours, (*lead, *(Given(p.name) for p in leading), *(Given(p.name) for p in star)), always)
    except TypeError:
        return found | {"call by place"}
    by_name = bool(leading) and not (star or positional_only or "call by keyword" in found) and all(p.kind not in ONLY for p in leading)
    if by_name and bound(ours, lead, {p.name: Given(p.name) for p in leading} | always) != places:
        found.add("order")
    return found | _defaults(
        ours, places, [p for p in given if p.default is not EMPTY and p.name not in unknown and not p.name.startswith("_")]
    )


def _leading(by_place: list[inspect.Parameter], unknown: set[str]) -> list[inspect.Parameter]:
    """Parameters up to the first that we do not have, or that is private."""
    return by_place[: next((i for i, p in enumerate(by_place) if p.name in unknown or p.name.startswith("_")), len(by_place))]


def _defaults(ours: Callable[..., Any], places: dict[str, Any], given: list[Any]) -> set[str]:
    """Where a parameter that may be left out means something else then, or may not."""
    own = inspect.signature(body_of(ours) or ours).parameters
    found = set()
    for p in given:
        name = next((k for k, v in places.items() if v == p.name), p.name)
        if name in own and own[name].kind not in (STAR, inspect.Parameter.VAR_KEYWORD) and not same_default(own[name].default, p.default):
            found.add(f"default of {p.name}")
    return found


def same_default(mine: Any, theirs: Any) -> bool:
    """Whether two defaults mean one thing; a stub writes what is no literal as its source, and `...` for anything."""
    if mine is EMPTY:
        return False
    if theirs is Ellipsis or mine is theirs:
        return True
    if isinstance(theirs, str) and not isinstance(mine, str):
        return str(mine).rpartition(".")[2] == theirs.rpartition(".")[2]
    return bool(mine == theirs) and isinstance(mine, bool) == isinstance(theirs, bool)
