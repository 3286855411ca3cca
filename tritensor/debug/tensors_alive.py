"""Report of memory in use: tensors by role, the C library's and each GPU's totals, lines where tracemalloc runs."""

from __future__ import annotations

import gc
import importlib
import tracemalloc
from typing import Any

import numpy as np

from tritensor.autograd.node import Node
from tritensor.cuda.memory import report as gpu_report
from tritensor.cuda.memory.report import size
from tritensor.cuda.runtime import active
from tritensor.debug.allocations import memory_owner
from tritensor.nn.parameter import Parameter
from tritensor.optim.optimizer import Optimizer
from tritensor.profiler.recording import held, host_memory_known
from tritensor.tensor.core import Tensor

_ROWS = 12  # rows of a part
_ROLES = ("parameters", "gradients", "state of optimizers", "saved for backward", "other tensors")


def report() -> str:
    """See debug.memory_report."""
    lines = _tensor_lines()
    host, _ = held()
    known = size(host) if host_memory_known() else "not told by this C library"
    lines.append(f"the C library has handed out {known}, numpy's arrays and Python's larger objects among it")
    lines += _tracemalloc_lines()
    if active.started():
        for accounts in active.runtime().allocators():
            lines.append(gpu_report.summary(accounts))
    return "\n".join(lines)


def _tensor_lines() -> list[str]:
    """Tensors that are alive, by device and what they are for, then by shape and type. Memory that several share counts once."""
    objects = gc.get_objects()
    tensors = [o for o in objects if isinstance(o, Tensor)]
    roles: dict[int, str] = {}
    owners: dict[int, tuple[Any, str]] = {}
    for t in tensors:
        owner = memory_owner(getattr(t, "_array", None))  # a tensor that a known path is to hand out has none yet
        if owner is not None:
            owners.setdefault(id(owner), (owner, _shape_text(t._array)))
            if isinstance(t, Parameter):
                roles[id(owner)] = "parameters"
            # setdefault below: a parameter used as another's gradient stays a parameter.
            grad = memory_owner(getattr(t._grad, "_array", None))
            if grad is not None:
                roles.setdefault(id(grad), "gradients")
    for optimizer in [o for o in objects if isinstance(o, Optimizer)]:
        for value in [v for entry in optimizer.state.values() for v in (entry.values() if isinstance(entry, dict) else ())]:
            # State such as step counts is no array, and has no owner.
            roles.setdefault(id(memory_owner(getattr(value, "_array", None))), "state of optimizers")
    for n in [o for o in objects if isinstance(o, Node)]:
        for array in [getattr(x, "_array", None) for x in n.inputs or ()] + [x[0] for x in n.outputs or () if x]:
            owner = memory_owner(array)
            if owner is not None:
                owners.setdefault(id(owner), (owner, _shape_text(array)))
                roles.setdefault(id(owner), "saved for backward")
    sums: dict[tuple[str, str], dict[str, list[int]]] = {}
    for key, (owner, shape) in owners.items():
        device = "cpu" if isinstance(owner, np.ndarray) else str(owner.device)
        row = sums.setdefault((device, roles.get(key, "other tensors")), {}).setdefault(shape, [0, 0])
        row[0] += owner.nbytes
        row[1] += 1
    lines = []
    for device in sorted({d for d, _ in sums}):
        whole = sum([row[0] for (d, _), shapes in sums.items() if d == device for row in shapes.values()])
        lines.append(f"tensors on {device}: {size(whole)}")
        for role in _ROLES:
            lines += _role_lines(role, sums.get((device, role), {}))
    return lines or ["no tensors"]


def _shape_text(array: Any) -> str:
    return f"{array.dtype.name}{list(array.shape)}"


def _role_lines(role: str, shapes: dict[str, list[int]]) -> list[str]:
    if not shapes:
        return []
    rows = sorted(shapes.items(), key=lambda s: -s[1][0])
    lines = [f"  {size(sum([row[0] for _, row in rows])):>12}  {role}"]
    lines += [f"  {size(nbytes):>16}  {count:4d} x {shape}" for shape, (nbytes, count) in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(f"  {size(sum([row[0] for _, row in rows[_ROWS:]])):>16}  in {len(rows) - _ROWS} other shapes")
    return lines


def _tracemalloc_lines() -> list[str]:
    """The lines that numpy's arrays come from, where tracemalloc runs; how to have them, where it does not."""
    if not tracemalloc.is_tracing():
        return ["  (the lines that ask for it are known while tracemalloc.start() is on; debug.memory_trace() knows modules and ops)"]
    # numpy registers its allocations under a domain of its own.
    domain: int = importlib.import_module("numpy.lib").tracemalloc_domain
    found = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, domain)]).statistics("lineno")
    return [f"  {size(s.size):>12} in {s.count} arrays at {s.traceback[0].filename}:{s.traceback[0].lineno}" for s in found[:_ROWS]]
