"""sabotage: faults are planted in an op one at a time, to see whether its samples and the questions find them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ops.array import Array, CudaArray, contiguous_strides, from_host, to_host
from tritensor.ops.replay import Corner, unwrap_corner
from tritensor.ops.table import Op, Partials
from tritensor.tensor.core import Tensor
from tritensor.testing.devices import places
from tritensor.testing.op_check import records
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import cases, types
from tritensor.testing.questions.layouts import poison
from tritensor.testing.report import kind

HALVES = ("bfloat16", "float16")
Corrupt = Callable[["Site"], Any]


class Site:
    """One call of a corner that a fault sits in: what it was given, what it made of it. `acted` is set when the fault has changed something."""

    acted = False

    def __init__(self, function: Callable[..., Any], written: tuple[int, ...] = (), view: bool = False) -> None:
        self.function, self.written, self.view = function, written, view
        self.args: tuple[Any, ...] = ()
        self.attrs: dict[str, Any] = {}

    def run(self) -> Any:
        """The corner's own result."""
        return self.function(*self.args, **self.attrs)

    def results(self, out: Any) -> list[Array]:
        """The arrays that a call has made, or written to."""
        found = [self.args[i] for i in self.written] if self.written else list(out) if isinstance(out, tuple | list) else [out]
        return [x for x in found if isinstance(x, np.ndarray | CudaArray) and x.size]


class Verdict(NamedTuple):
    """What became of one fault: "caught", with the finding; "escaped"; "changes nothing", of an op that it does not concern."""

    fault: str
    outcome: str
    finding: str = ""

    @property
    def escaped(self) -> bool:
        return self.outcome == "escaped"

    def __str__(self) -> str:
        return f"{self.fault}: {self.outcome}" + f" by {', '.join(self.finding.split(': ', 2)[:2])}" * bool(self.finding)


# Faults. Each runs the corner and spoils what goes in or comes out.
def last_element_off(site: Site) -> Any:
    out = site.run()
    out = out.copy() if site.view else out  # a view's element is its input's: another question would find that
    for x in site.results(out)[:1]:
        _edit(
            site,
            x,
            lambda v: ~v if v.dtype.kind == "b" else (v * 1.01 + 0.01 if np.isfinite(v) else v * 0) if v.dtype.kind not in "iu" else v + 1,
        )
    return out


def element_unwritten(site: Site) -> Any:
    out = site.run()
    for x in site.results(out)[:1]:
        _edit(site, x, lambda v: np.asarray(poison(v.dtype)))
    return out


def input_written(site: Site) -> Any:
    out = site.run()
    for x in [a for i, a in enumerate(_flat(site.args)) if isinstance(a, np.ndarray | CudaArray) and a.size and i not in site.written][:1]:
        _edit(site, x, lambda v: np.zeros((), v.dtype) if v.astype(bool) else np.ones((), v.dtype))
    return out


def another_type(site: Site) -> Any:
    if "out" in site.attrs:
        return site.run()
    site.acted = True
    wider = {"float64": np.float32, "float32": np.float64, "int64": np.int32}  # as far as one type is from the next: values stay close

    def cast(x: Any) -> Any:
        to = wider.get(dtypes.of(x.dtype).name, np.int64) if isinstance(x, np.ndarray | CudaArray) else None
        return x if to is None else _like(to_host(x).astype(to), x)

    out = site.run()
    return _map_results(out, cast)


def strides_ignored(site: Site) -> Any:
    def dense(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(dense, x))
        if not isinstance(x, CudaArray) or x.size < 2 or x.strides == contiguous_strides(x.shape):
            return x
        site.acted = True
        return CudaArray(x.storage, x.shape, x.dtype, None, x.offset)  # as a kernel reads it that takes every array for contiguous

    site.args = tuple(map(dense, site.args))
    return site.run()


def one_percent_off(site: Site) -> Any:
    def off(x: Any) -> Any:
        if not isinstance(x, np.ndarray | CudaArray) or dtypes.of(x.dtype).name not in HALVES:
            return x
        host = to_host(x)
        moved = (host.astype(np.float64) * 1.01).astype(host.dtype)
        site.acted |= bool((moved != host).any())  # of 0, inf and NaN 1 % is nothing
        return _like(moved, x)

    out = site.run()
    return out if "out" in site.attrs else _map_results(out, off)


def thousandth_off(site: Site) -> Any:
    site.acted = True
    return _gradients(site.run(), lambda x: x * 1.001)


def no_gradient(site: Site) -> Any:
    out = site.run()
    site.acted |= out is not None
    return None if not isinstance(out, tuple) else tuple(None for _ in out)


def arriving_gradient_detached(site: Site) -> Any:
    site.acted = True
    g = site.args[0]
    site.args = (tuple(x if x is None else x.detach() for x in g) if isinstance(g, tuple) else g.detach(), *site.args[1:])
    return site.run()


def result_detached(site: Site) -> Any:
    site.acted = True
    return _gradients(site.run(), lambda x: x.detach())


# name, field of the record, what spoils it, the types to ask in (the first that the op has), whether on device cuda
FAULTS: tuple[tuple[str, str, Corrupt, tuple[str, ...], bool], ...] = (
    ("reference: an element off", "reference", last_element_off, ("float64",), False),
    ("forward kernel: an element off", "forward", last_element_off, ("float32",), True),
    ("forward kernel: an element unwritten", "forward", element_unwritten, ("float32",), True),
    ("forward kernel: strides ignored", "forward", strides_ignored, ("float32",), True),
    ("forward kernel: writes its input", "forward", input_written, ("float32",), True),
    ("forward kernel: another type", "forward", another_type, ("float32",), True),
    ("forward kernel: 1 % off in 16 bits", "forward", one_percent_off, HALVES, True),
    ("rule: a part in a thousand off", "rule", thousandth_off, ("float64",), False),
    ("rule: no gradient", "rule", no_gradient, ("float64",), False),
    ("rule: detaches the arriving gradient", "rule", arriving_gradient_detached, ("float64",), False),
    ("rule: detaches its result", "rule", result_detached, ("float64",), False),
    ("backward kernel: an element off", "backward", last_element_off, ("float32",), True),
    ("backward kernel: an element unwritten", "backward", element_unwritten, ("float32",), True),
    ("backward kernel: strides ignored", "backward", strides_ignored, ("float32",), True),
    ("backward kernel: writes what it is given", "backward", input_written, ("float32",), True),
    ("backward kernel: another type", "backward", another_type, ("float32",), True),
    ("backward kernel: 1 % off in 16 bits", "backward", one_percent_off, HALVES, True),
    ("cpu: an element off", "cpu", last_element_off, ("float32",), False),
    ("cpu: an element unwritten", "cpu", element_unwritten, ("float32",), False),
    ("cpu: writes its input", "cpu", input_written, ("float32",), False),
    ("cpu: 1 % off in 16 bits", "cpu", one_percent_off, HALVES, False),
    ("cpu_backward: an element off", "cpu_backward", last_element_off, ("float32",), False),
)


def sabotage(op: str | Op) -> list[Verdict]:
    """Plant each of FAULTS in a copy of an op and ask it the questions, until one finds something that it does not find in the op itself.

    Args:
        op: a record, a name or a file, which registers one op.

    Returns: a verdict for each fault that the op has the corner for. One that escapes asks for a sample, or a smooth one, that reaches it.
    Raises UnknownOpError for what names no op, DeviceError where device cuda is neither a GPU nor emulated.
    """
    found = []
    for record in records(op):
        for name, field, corrupt, kinds, on_device in FAULTS:
            dtype = next(
                (k for k in kinds if k in types(record)), types(record)[0] if kinds == ("float32",) or field == "reference" else None
            )
            if getattr(record, field) is None or dtype is None or (field == "reference" and record.forward is None and record.rule is None):
                continue
            if field == "reference" and record.rule is None:
                on_device = True  # without a gradient the kernel alone can gainsay it
            if record.mutates and corrupt in (another_type, one_percent_off):
                continue  # it returns nothing
            found.append(_verdict(record, name, field, corrupt, dtype, "cuda" if on_device else "cpu"))
    return found


def _verdict(op: Op, name: str, field: str, corrupt: Corrupt, dtype: str, where: str) -> Verdict:
    sites: list[Site] = []
    spoiled = _plant(op, field, corrupt, sites)
    on = next(iter(places(where).values()))
    for bad, good in zip(cases(spoiled, dtype, on), cases(op, dtype, on), strict=True):
        found = ask(bad)
        if found:
            sound = {kind(f) for f in ask(good)}  # what is wrong without the fault is not its doing
            if new := [f for f in found if kind(f) not in sound]:
                return Verdict(name, "caught", new[0])
    return Verdict(name, "escaped" if any(s.acted for s in sites) else "changes nothing")


def _plant(op: Op, field: str, corrupt: Corrupt, sites: list[Site]) -> Op:
    """A copy of the record with the fault in one corner; `sites` collects the functions that it sits in."""
    written = tuple(op.inputs.index(m) for m in op.mutates)

    def spoilt(function: Any, gradient: bool) -> Any:
        if function is None:
            return None
        site = Site(unwrap_corner(function), () if gradient else written, op.view and not gradient)
        sites.append(site)

        def corner(*args: Any, **attrs: Any) -> Any:
            site.args, site.attrs = args, attrs
            return corrupt(site)

        if not isinstance(function, Corner):
            return corner
        return Corner(
            corner, function.name, draws=function.draws, mutates=function.mutates, reports=function.reports, one_type=function.one_type
        )

    old = getattr(op, field)
    if not isinstance(old, Partials):
        changed: dict[str, Any] = {field: spoilt(old, False)}
        return replace(op, **changed, keep_cache={})
    functions = tuple([spoilt(f, True) for f in old.functions])
    steps = tuple([(i, functions[i], fetches, place) for i, _, fetches, place in old.steps])
    changed = {field: old._replace(functions=functions, steps=steps)}
    return replace(op, **changed, keep_cache={})


def _edit(site: Site, x: Array, change: Callable[[np.ndarray], Any]) -> None:
    """Change the last element of an array where it lies."""
    at = tuple(n - 1 for n in x.shape)
    if isinstance(x, np.ndarray):
        value = np.asarray(x[at])
    else:
        place = (x.offset + sum(i * s for i, s in zip(at, x.strides, strict=True))) * x.itemsize
        cell = np.empty(1, x.dtype)
        x.storage.read(cell, place)
        value = cell.reshape(())
    new = np.asarray(change(value)).astype(x.dtype)
    if new.tobytes() == value.tobytes() or (isinstance(x, np.ndarray) and not x.flags.writeable):  # bytes, as NaN differs from itself
        return
    site.acted = True
    if isinstance(x, np.ndarray):
        x[at] = new
    else:
        x.storage.write(new.reshape(1), place)  # a write of its own: CudaArray has no item assignment


def _like(host: np.ndarray, x: Array) -> Array:
    return from_host(host, x.device) if isinstance(x, CudaArray) else host


def _flat(args: tuple[Any, ...]) -> list[Any]:
    return [x for a in args for x in (a if isinstance(a, tuple) else (a,))]


def _gradients(out: Any, change: Callable[[Any], Any]) -> Any:
    """A rule's gradients, each changed."""
    return _map_results(out, lambda x: change(x) if isinstance(x, Tensor) else x)


def _map_results(out: Any, change: Callable[[Any], Any]) -> Any:
    return tuple(map(change, out)) if isinstance(out, tuple | list) else change(out)
