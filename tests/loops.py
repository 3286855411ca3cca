"""A loop in place of `parametrize`: cases that take microseconds are asked in one item, which tells of every one that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

TOLD = 40  # failures that one message shows


def each(names: str | tuple[str, ...], cases: Iterable[Any], ids: Callable[[Any], str] | list[str] | None = None) -> Callable[..., Any]:
    """`@each(("op", "dtype"), cases)`, written as `parametrize` is: the values of each case are given by name, next to fixtures.

    A case is named by its `pytest.param(..., id=)`, by `ids`, or by its values; one that fails is told with its name and its error, and
    the others are asked all the same. An item of pytest costs milliseconds, some of them in every worker that collects it.
    """
    named = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    rows = [case if isinstance(case, type(pytest.param())) else pytest.param(*([case] if len(named) == 1 else case)) for case in cases]
    told = [_name(row, k, ids) for k, row in enumerate(rows)]
    assert rows, "there is nothing to ask"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def asked(**fixtures: Any) -> None:
            found = []
            for name, row in zip(told, rows, strict=True):
                try:
                    test(**dict(zip(named, row.values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    found.append(f"{name}: {type(error).__name__}: {error}")
            if found:
                pytest.fail("\n".join([f"{len(found)} of {len(rows)} cases fail", *found[:TOLD]]), pytrace=False)

        functools.update_wrapper(asked, test)
        asked.__signature__ = _without(test, named)  # type: ignore[attr-defined]
        return asked

    return decorate


def _name(row: Any, k: int, ids: Callable[[Any], str] | list[str] | None) -> str:
    if row.id is not None:
        return str(row.id)
    if isinstance(ids, list):
        return ids[k]
    return "-".join(str(ids(v) if ids else v)[:60] for v in row.values)


def _without(test: Callable[..., None], named: list[str]) -> Any:
    """The signature that pytest reads: fixtures alone."""
    whole = inspect.signature(test)
    return whole.replace(parameters=[p for p in whole.parameters.values() if p.name not in named])
