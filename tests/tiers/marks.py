"""Marks that items get when they are collected: what the quick tier leaves out, by what was measured, and what only the full one asks."""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.tiers.ops import KNOWN, WALKS

# {test function: [items, processor seconds of them all]}; written by python -m tests.tiers.measure
MEASURED = Path(__file__).with_name("measured.json")
SHARE = 0.5  # seconds that the quick tier spends on one test function: of a dearer one it asks some items
CHEAP = 0.02  # seconds of one item up to which a function is asked whole: it asks another thing with each
LONG = 1.0  # seconds of one item beyond which the quick tier leaves it to the standard one


@functools.cache
def measured() -> dict[str, tuple[int, float]]:
    return {name: (items, seconds) for name, (items, seconds) in json.loads(MEASURED.read_text()).items()}


def mark(items: list[pytest.Item]) -> None:
    """Mark `standard` what the quick tier leaves out, `slow` and `full` what the standard one does of tests marked crossed."""
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    for name, cases in functions.items():
        if cases[0].get_closest_marker("crossed"):
            asked = diagonal(cases)
            for item in cases:
                if item not in asked:
                    item.add_marker(pytest.mark.slow)
                    item.add_marker(pytest.mark.full)
            cases = [item for item in cases if item in asked]
        if name in measured():
            kept = thinned(cases, *measured()[name])
            for item in cases:
                if item not in kept and not item.get_closest_marker("quick"):
                    item.add_marker(pytest.mark.standard)


def of_other_ops(items: list[pytest.Item], ops: list[str]) -> list[pytest.Item]:
    """The items of the walks that are named for an op which is not asked."""
    found = []
    for item in items:
        if item.nodeid.startswith(WALKS):
            named = KNOWN.intersection(re.split(r"[^\w]", item.nodeid.partition("[")[2]))
            if named and not named.intersection(ops):
                found.append(item)
    return found


def thinned(cases: list[pytest.Item], items: int, seconds: float) -> list[pytest.Item]:
    """The items that the quick tier asks of a function: as many as its share of time allows, on the diagonal first; none where one is too long."""
    each = seconds / max(items, 1)
    if each > LONG:
        return []
    few = max(int(SHARE / each), 1)
    if few >= len(cases) or each <= CHEAP:
        return cases
    first = diagonal(cases)
    if len(first) >= few:
        return spread(first, few)
    return first + spread([item for item in cases if item not in first], few - len(first))


def spread(cases: list[pytest.Item], few: int) -> list[pytest.Item]:
    """Some of many, evenly."""
    return [cases[i * len(cases) // few] for i in range(few)]


def diagonal(cases: list[pytest.Item]) -> list[pytest.Item]:
    """The items with the first value of each `parametrize` together, the second of each, and so on until the longest has ended, shorter ones
    again and again, each time from one further on: every value stands on it."""
    axes = [(mark.args[0],) if isinstance(mark.args[0], str) else mark.args[0] for mark in cases[0].iter_markers("parametrize")]
    axes = [tuple(n.strip() for name in names for n in name.split(",")) for names in axes]
    seen: list[dict[Any, int]] = [{} for _ in axes]  # of each axis the values, by identity, in their order
    places = []
    for item in cases:
        values = [tuple(id(item.callspec.params[name]) for name in names) for names in axes]  # type: ignore[attr-defined]
        places.append(tuple(known.setdefault(value, len(known)) for value, known in zip(values, seen, strict=True)))
    wanted = {tuple((n + n // len(known)) % len(known) for known in seen) for n in range(max(map(len, seen), default=0))}
    return [item for item, place in zip(cases, places, strict=True) if place in wanted]
