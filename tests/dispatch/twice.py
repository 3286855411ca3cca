"""Every call made twice, the second time by its plan: `python -m pytest -p tests.dispatch.twice ...` runs any tests so.

A call that can be planned is planned at its first time, its plan is run at once on the same arguments, and what that gives is told from what the long way gave
by nothing: values, layout, type, place in the graph, what the node keeps. The test goes on with the plan's result.
"""

from __future__ import annotations

import math
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.dispatch.plans import doors
from tritensor.dispatch.plans.door_code import ABSENT, HANDED_ON
from tritensor.dispatch.plans.text import Unplanned
from tritensor.ground import shortcuts
from tritensor.ground.call_site import INSIDE, mark_wrapper
from tritensor.ground.thread_state import here
from tritensor.ops.array import device_of, element_strides, layout_of, to_host
from tritensor.random import default_generator

# What counts launches, waits, reports or memory, or shares tensors with other threads, is asked once.
ONCE = (
    "tests/cuda/memory/test_memory_report.py", "tests/cuda/memory/test_pinned.py::test_what_the_host_computes_on_is_there", "tests/cuda/test_device_errors.py",
    "tests/familiar/test_cuda.py::test_watching_memory", "tests/kernels/products/test_epilogues.py::test_without_gradients_nothing_is_kept",
    "tests/onnx/test_models.py::test_exports_in_several_threads", "tests/test_debug.py", "tests/threads/test_first_use.py",
    "tests/training/test_batch_size.py::test_bytes_and_seconds_on_the_cpu",
)  # fmt: skip
planned: dict[str, int] = {}  # how often a function's call has been planned, by its name


def difference(a: Any, b: Any) -> str:
    """What can be told apart of two results of one call; "" for nothing."""
    if isinstance(a, tuple | list):
        if type(a) is not type(b) or len(a) != len(b):
            return f"{type(a)} of {len(a)} and {type(b)} of {len(b)}"
        return next((wrong for x, y in zip(a, b, strict=True) if (wrong := difference(x, y))), "")
    if a is b:
        return ""
    x, y = a._array, b._array
    if type(x) is not type(y) or x.dtype != y.dtype or x.shape != y.shape or device_of(x) != device_of(y):
        return f"{x.dtype} {x.shape} and {y.dtype} {y.shape}"
    if x.size and element_strides(x) != element_strides(y):
        return f"strides {element_strides(x)} and {element_strides(y)}"
    if to_host(x).tobytes() != to_host(y).tobytes():
        first, second = to_host(x), to_host(y)
        if not (first.dtype.kind in "fcV" and np.array_equal(first.astype(np.complex128), second.astype(np.complex128), equal_nan=True)):
            return f"{first.ravel()[:8]} and {second.ravel()[:8]}"
    if b._layout is not None and b._layout is not layout_of(y):
        return "the layout that is kept is not the array's"
    if a.requires_grad != b.requires_grad or a.is_leaf != b.is_leaf or (a._version_counter is None) != (b._version_counter is None):
        return (
            f"requires_grad {a.requires_grad}, {b.requires_grad}; leaf {a.is_leaf}, {b.is_leaf}; {a._version_counter}, {b._version_counter}"
        )
    if (a._base is None) != (b._base is None) or (
        a._base is not None and a._base.shape != b._base.shape
    ):  # not `is`: a call may make the base
        return f"views of {a._base} and {b._base}"
    return _nodes(a._node, b._node, 0)


def _nodes(a: Any, b: Any, depth: int) -> str:
    """The same of two places in the graph."""
    if a is b or a is None or b is None or isinstance(a, tt.Tensor):
        return "" if a is b else f"edges {a} and {b}"
    if type(a) is not type(b) or a.op is not b.op or len(a.edges) != len(b.edges) or getattr(a, "index", 0) != getattr(b, "index", 0):
        return f"nodes {a} of {a.op} and {b} of {b.op}"
    if (a.attrs or {}) != (b.attrs or {}) or (a.outputs is None) != (b.outputs is None):
        return f"attributes {a.attrs} and {b.attrs}, outputs {a.outputs} and {b.outputs}"
    for x, y in zip(a.inputs or (), b.inputs or (), strict=False):
        if isinstance(x, tt.Tensor) != isinstance(y, tt.Tensor) or (
            not isinstance(x, tt.Tensor) and (type(x) is not type(y) or (x != y and x == x))
        ):
            return f"saved {x} and {y}"
    kept = a.op is not None and getattr(a.op, "broadcasts", False)  # shapes are left out where nothing is to be undone
    if a.meta != b.meta and not (kept and b.meta is None):
        return f"shapes {a.meta} and {b.meta}"
    if depth < 4:
        return next((wrong for e, f in zip(a.edges, b.edges, strict=True) if (wrong := _nodes(e, f, depth + 1))), "")
    return ""


_VALUES = (0.0, 3.0e38, math.nan, -math.inf, -1.0)


def _other_values(door: Any, plan: Any, bound: dict[str, Any], args: Any, kwargs: Any) -> None:
    """The same call with the memory of its floating tensors filled with values at which functions take other ways: the plan does as the long way does."""
    given = {id(t): t for v in bound.values() for t in doors._tensors_in(v) if type(t._array) is np.ndarray and t._array.dtype.char in "fd"}
    if not given or not all([t._array.flags.writeable for t in given.values()]) or len(given) > 3:
        return
    kept, place = [t._array.copy() for t in given.values()], default_generator.offset
    try:
        for value in _VALUES:
            for t in given.values():
                t._array[...] = value
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ways = []
                for way in (
                    lambda: door.long(*args, **kwargs),
                    lambda: plan(*[bound.get(n, ABSENT) for n, k in door.form.kinds.items() if k in HANDED_ON]),
                ):
                    default_generator.offset = place  # both draw the same
                    try:
                        with shortcuts.suspended():
                            ways.append(way())
                    except Exception as error:
                        ways.append(error)
            long, quick = ways
            if isinstance(quick, Exception):  # the long way would say what is wrong
                continue
            wrong = f"raises {long!r}" if isinstance(long, Exception) else _values(long, quick)
            assert not wrong, f"{door.name} of tensors of {value}: by the long way and by the plan: {wrong}"
    finally:
        default_generator.offset = place
        for t, values in zip(given.values(), kept, strict=True):
            t._array[...] = values


def _values(a: Any, b: Any) -> str:
    if isinstance(a, tuple | list):
        return next((wrong for x, y in zip(a, b, strict=True) if (wrong := _values(x, y))), "")
    first, second = to_host(a._array), to_host(b._array)
    if first.dtype.kind == "V":
        first, second = first.astype(np.float32), second.astype(np.float32)
    return "" if np.array_equal(first, second, equal_nan=first.dtype.kind in "fc") else f"{first.ravel()[:8]} and {second.ravel()[:8]}"


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    left_out = [item for item in items if item.nodeid.startswith(ONCE)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def install() -> None:
    """Make every call twice from now on."""
    record = doors.Door._record

    def record_and_run(self: Any, bound: dict[str, Any], args: Any, kwargs: Any) -> Any:
        place = default_generator.offset
        result, plan = record(self, bound, args, kwargs)
        if plan is None or here.capture is not None:  # a graph would hold both
            return result, plan
        planned[self.name] = planned.get(self.name, 0) + 1
        if self.name.endswith("_"):  # it writes, and would write twice: the next call goes by the plan
            return result, plan
        drawn, default_generator.offset = default_generator.offset, place
        try:
            second = plan(*[bound.get(n, ABSENT) for n, kind in self.form.kinds.items() if kind in HANDED_ON])
        except (
            KeyError,
            RuntimeWarning,
            Unplanned,
        ):  # a GPU's recordings were dropped meanwhile, a warning is an error: the call goes the long way
            default_generator.offset = drawn
            return result, plan
        wrong = difference(result, second)
        assert not wrong, f"{self.name}{args}{kwargs}: by the long way and by the plan: {wrong}"
        assert default_generator.offset == drawn, (
            f"{self.name}{args}{kwargs}: draws {default_generator.offset - place} blocks by its plan, else {drawn - place}"
        )
        if self.checks and threading.current_thread() is threading.main_thread():  # other threads may share the tensors
            _other_values(self, plan, bound, args, kwargs)
        return second, plan

    # As if it stood in the library: a message names the line of the test.
    for f in (record_and_run, _other_values):
        f.__code__ = mark_wrapper(f.__code__.replace(co_filename=f"{INSIDE}twice.py"))
    doors.Door._record = record_and_run  # type: ignore[method-assign]
    doors.BEGIN, doors.SEEN_BEFORE = -1, False


install()
