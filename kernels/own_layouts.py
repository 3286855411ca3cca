"""Layouts of results that an op lays itself, for arrays without memory."""

from __future__ import annotations

from typing import Any


def strides_of(name: str, shape: tuple[int, ...], arrays: list[Any], attrs: dict[str, Any]) -> tuple[int, ...] | None:
    return None
