"""Batch: parameters of one type and device that step together, with the tables of their addresses and states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.autograd.node import version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.ground.device import cpu
from tritensor.ground.errors import ShapeError
from tritensor.kernels.optimizers.cpu_table import CpuTable
from tritensor.kernels.optimizers.gpu_table import GpuTable
from tritensor.kernels.optimizers.step_formula import StepFormula
from tritensor.kernels.parts.copying import to_c_order, write
from tritensor.ops.array import CudaArray, from_host, is_contiguous
from tritensor.ops.lazy_array import LazyArray, at_once, run_before_write, settle, waiting
from tritensor.ops.strided_array import MetaArray
from tritensor.optim.plan import Plan
from tritensor.optim.state import is_on_gpu, refuse_in_capture, to_number
from tritensor.tensor.core import Tensor, new_tensor

_F32 = np.dtype(np.float32)


class Batch:
    """`scalars` (n, c) float32 holds the numbers of all states, "step" first: each state has views of one element."""

    __slots__ = (
        "arrays", "checked", "device", "dtypes", "entries", "formula", "params", "scalars", "shapes", "states", "strided", "table", "tensors",
    )  # fmt: skip

    def __init__(self, formula: StepFormula, params: list[Tensor], entries: list[dict[str, Any]]) -> None:
        self.formula, self.params, self.entries = formula, params, entries
        self.device = params[0].device
        with at_once(*params, *[e[name] for e in entries for name in (*formula.scalars, *formula.states)]):
            # one array for all steps, so that a launch reads it at once; a view of it is what the state dict shows
            self.scalars = _gather_scalars(formula.scalars, entries, params[0]) if formula.scalars else None
        self.arrays = [p._array for p in params]
        self.tensors = [[e[name] for name in formula.states] for e in entries]
        names = (*formula.scalars, *formula.states)
        self.checked = [[(name, e[name], e[name]._array) for name in names] for e in entries]
        rows = [[a, a, *[t._array for t in states]] for a, states in zip(self.arrays, self.tensors, strict=True)]
        self.dtypes, self.shapes = [a.dtype for a in self.arrays], [a.shape for a in self.arrays]
        self.states = [t for states in self.tensors for t in states]
        self.strided = False
        self.table: Any = None
        # one launch takes only dense memory; strided parameters are copied for each step instead, since their table would be stale
        if isinstance(rows[0][0], CudaArray):
            self.strided = not all(is_contiguous(x) for row in rows for x in row)
            if not self.strided:
                refuse_in_capture(params[0])
                self.table = GpuTable(formula, rows)
        elif type(rows[0][0]) is not MetaArray:  # which steps without a number
            self.table = CpuTable(formula, rows)

    def is_current(self, state: Any) -> bool:
        """Whether parameters and states are still what they were when the tables were made."""
        for p, a, entry, checked in zip(self.params, self.arrays, self.entries, self.checked, strict=True):
            # a parameter's .data may become another, or a state be loaded: the table's addresses would point at freed memory
            if p._array is not a or (checked and state.get(p) is not entry):
                return False
            for name, t, x in checked:
                if entry.get(name) is not t or t._array is not x:  # type: ignore[union-attr]
                    return False
        return True

    def step(self, plan: Plan, name: str, found_inf: Tensor | None = None) -> None:
        """One step of all parameters, whose gradients are there; none where found_inf is above 0, which on a GPU is only known there."""
        gradients: list[Any] = [p.grad._array for p in self.params]  # type: ignore[union-attr]
        if waiting or LazyArray in map(type, gradients):
            gradients = settle(gradients)
            for t in (*self.params, *self.states):
                run_before_write(t._array)
        # two list comparisons in the usual case; which gradient is wrong is searched only then
        if [g.dtype for g in gradients] != self.dtypes or [g.shape for g in gradients] != self.shapes:
            self._refuse(gradients, name)
        for t in (*self.params, *self.states):
            copy_for_borrowers(t)
        if isinstance(self.arrays[0], CudaArray):
            self._step_on_gpu(gradients, plan, None if found_inf is None else found_inf.to(self.device)._array)  # type: ignore[arg-type]
        elif self.device.type == "meta":
            self._make_rows(plan)
        # the host steps these itself, so it has to know the flag first
        elif found_inf is None or not found_inf.item():
            self.table.run(gradients, self._make_rows(plan), plan.variant)
        for p in self.params:
            version_of(p).bump(name)
        for t in self.states:
            if t._version_counter is not None:  # else nobody has looked at it
                t._version_counter.bump(name)

    def _refuse(self, gradients: list[Any], name: str) -> None:
        for g, a in zip(gradients, self.arrays, strict=True):
            if g.dtype != a.dtype or g.shape != a.shape:
                raise ShapeError(
                    f"{name}: a gradient of {g.dtype} {tuple(g.shape)} for a parameter of {a.dtype} {tuple(a.shape)}; "
                    "call zero_grad() where a parameter's data becomes another"
                )

    def _make_rows(self, plan: Plan) -> np.ndarray:
        """The rows of numbers, one where all parameters have taken as many steps; the scalars are moved on."""
        settings = [to_number(s) for s in plan.settings]
        given = settings, float(plan.weight_decay), plan.decay
        if self.scalars is None:
            return np.array([self.formula.row([], *given)[1]])
        columns: np.ndarray = self.scalars._array  # type: ignore[assignment]
        # the usual case: one row of corrections, computed once, serves every parameter
        if (columns == columns[0]).all():
            columns[:], row = self.formula.row(columns[0].tolist(), *given)
            return np.array([row])
        made = [self.formula.row(line, *given) for line in columns.tolist()]
        columns[:] = [new for new, _ in made]
        return np.array([row for _, row in made])

    def _step_on_gpu(self, gradients: list[CudaArray], plan: Plan, found_inf: CudaArray | None) -> None:
        lr, *others = plan.settings
        # a rate on the GPU is read there: item() would wait, and a captured graph would keep the old number
        rate = lr.detach()._array if is_on_gpu(lr) else None
        settings = [0.0 if rate is not None else to_number(lr), *[to_number(s) for s in others]]
        table = self.table
        rows: list[list[CudaArray]] = []
        if self.strided:
            rows = [
                [to_c_order(a), to_c_order(a), *[to_c_order(t._array) for t in states]]
                for a, states in zip(self.arrays, self.tensors, strict=True)
            ]
            table = GpuTable(self.formula, rows)
        scalars = None if self.scalars is None else self.scalars._array
        given = [to_c_order(g) for g in gradients]
        table.run(given, scalars, rate, settings, float(plan.weight_decay), plan.variant, found_inf)
        for row, a, states in zip(rows, self.arrays, self.tensors, strict=False):
            for x, y in zip((a, *[t._array for t in states]), (row[0], *row[2:]), strict=True):
                if x is not y:
                    write(x, y)


def _gather_scalars(names: Sequence[str], entries: list[dict[str, Any]], p: Tensor) -> Tensor:
    """(n, c) float32 of the scalars of all states, which get views of its elements."""
    refuse_in_capture(p)
    given = [[e[name] for name in names] for e in entries]
    if any(is_on_gpu(x) for line in given for x in line):
        from tritensor.ops.table import ops

        held = [x if isinstance(x, Tensor) else new_tensor(from_host(np.array(x, _F32), p.device)) for line in given for x in line]
        made = ops.stack(*[x.detach().to(device=p.device, dtype=_F32) for x in held], dim=0).reshape(len(entries), len(names))
    else:
        numbers = np.array([[to_number(x) for x in line] for line in given], _F32).reshape(len(entries), -1)
        made = new_tensor(from_host(numbers, cpu if p.is_meta else p.device))
    for i, entry in enumerate(entries):
        for k, name in enumerate(names):
            entry[name] = made[i, k]
    return made
