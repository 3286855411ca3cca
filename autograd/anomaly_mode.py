"""Anomaly mode: backward looks for NaN, and an error in it shows the line of the forward call."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any

import numpy as np

from tritensor.autograd import saved
from tritensor.autograd.modes import state
from tritensor.autograd.node import notes
from tritensor.ground.call_site import INSIDE, file_and_line
from tritensor.ground.errors import GradError
from tritensor.ops.array import to_host
from tritensor.ops.strided_array import MetaArray


class _Anomaly:
    """Switches the mode of this thread, and back."""

    def _switch(self, mode: bool, check_nan: bool) -> None:
        if mode != is_anomaly_enabled():
            state.anomaly = Watch if mode else None
            saved.watch(mode)
        state.check_nan = check_nan

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        self._switch(*self._before)

    _before: tuple[bool, bool] = (False, True)


class detect_anomaly(_Anomaly):
    """Inside, a backward function that gives NaN (check_nan) or fails raises, and the lines of the forward call are shown. Slow: for searching."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check = bool(check_nan)
        said = "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
        warnings.warn(said, stacklevel=2)

    def __enter__(self) -> None:
        self._before = is_anomaly_enabled(), state.check_nan
        self._switch(True, self._check)


class set_detect_anomaly(_Anomaly):
    """Set the mode at once; as a context manager, restore what was there at the end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = is_anomaly_enabled(), state.check_nan
        self._switch(bool(mode), bool(check_nan))


def is_anomaly_enabled() -> bool:
    """True where anomaly mode is on in this thread."""
    return state.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """True where anomaly mode looks for NaN."""
    return state.check_nan


def note_lines(node: Any) -> None:
    """Keep the lines of the user's program that led to this node's op, and the node whose backward made it, if one did."""
    frames = traceback.extract_stack(sys._getframe(2))  # past this file and the maker of the node
    outside = [f for f in frames if not f.filename.startswith(INSIDE)]
    about = notes.setdefault(node, {})
    about["traceback_"] = traceback.format_list(outside or list(frames))  # PyTorch's keys: programs read them from node.metadata
    if outside:
        about["line_"] = file_and_line(outside[-1].filename, outside[-1].lineno or 0)
    if state.task is not None and state.task.running is not None:
        about["parent_"] = state.task.running


def refuse_nan(node: Any, found: tuple[Any, ...]) -> None:
    """Raise GradError where a backward function gave NaN."""
    if not state.check_nan:
        return
    for i, g in enumerate(found):
        array = getattr(g, "_array", g)
        if array is None or type(array) is MetaArray:
            continue
        if array.dtype.kind in "fcV" and np.isnan(to_host(array)).any():  # V: so numpy calls bfloat16 and float8
            line = notes.get(node, {}).get("line_")
            where = f"The forward call is at {line}" if line else "Run the forward pass under detect_anomaly, too, to see its line"
            raise GradError(f"Function '{node.name()}' returned nan values in its {i}th output. {where}.")


def tell(node: Any) -> None:
    """Warn with the forward call of a node whose backward failed, and with that of the node whose backward made it."""
    about = notes.get(node, {})
    if "traceback_" not in about:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for more information.",
            stacklevel=2,
        )
        return
    lines = "".join(about["traceback_"])
    warnings.warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{lines}", stacklevel=2)
    seen = {id(node)}
    parent = about.get("parent_")
    while parent is not None and id(parent) not in seen:
        seen.add(id(parent))
        above = notes.get(parent, {})
        lines = "".join(above.get("traceback_", ()))
        warnings.warn(
            f"Previous calculation was induced by {parent.name()}. Traceback of forward call that induced it:\n{lines}", stacklevel=2
        )
        parent = above.get("parent_")


class Watch:
    """What the engine and the makers of nodes call while the mode is on."""

    note = staticmethod(note_lines)
    check = staticmethod(refuse_nan)
    tell = staticmethod(tell)
