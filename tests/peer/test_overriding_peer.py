"""Calls that `__torch_function__` is given in torch and here: functions by name, types, arguments; the class of each result; who is who among functions."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.overrides

import tritensor as tt
import tritensor.overrides

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
Program = Callable[[Any, Any, Any], Any]  # of a library, an instance of a subclass, a plain tensor


def shown(x: Any, T: Any) -> str:
    """An argument, in words both libraries share."""
    if isinstance(x, T.Tensor):
        return type(x).__name__
    if isinstance(x, tuple | list):
        return f"{type(x).__name__}[{', '.join(shown(y, T) for y in x)}]"
    return type(x).__name__ if isinstance(x, np.ndarray) or callable(x) else repr(x).rpartition(".")[2]


def heard(program: Program, T: Any, dtype: str = "float32", kwargs: bool = True) -> list[Any]:
    """What the class was asked in a program, and the type of its result."""
    calls: list[Any] = []

    class S(T.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), given: Any = None) -> Any:
            named = {k: shown(v, T) for k, v in (given or {}).items()} if kwargs else {}
            calls.append((T.overrides.resolve_name(func), [t.__name__ for t in types], [shown(a, T) for a in args], named))
            return super().__torch_function__(func, types, args, given or {})

    values = T.tensor([[1, 2], [3, 4]], dtype=getattr(T, dtype))
    try:  # DType is our dtype's name
        made: Any = type(program(T, values.as_subclass(S), values.clone())).__name__.replace("DType", "dtype")
    except (TypeError, RuntimeError, ValueError, NotImplementedError) as error:
        made = "TypeError" if isinstance(error, TypeError) else "error"
    return [*calls, made]


OPERATORS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
]
PROGRAMS: dict[str, Program] = {
    **{f"s {n} t": lambda T, s, t, n=n: getattr(operator, n)(s, t) for n in OPERATORS},  # type: ignore[misc]
    **{f"t {n} s": lambda T, s, t, n=n: getattr(operator, n)(t, s) for n in OPERATORS},  # type: ignore[misc]
    **{f"s {n} 2": lambda T, s, t, n=n: getattr(operator, n)(s, 2) for n in OPERATORS if "matmul" not in n},  # type: ignore[misc]
    **{f"2 {n} s": lambda T, s, t, n=n: getattr(operator, n)(2, s) for n in OPERATORS if n[0] != "i" and n != "matmul"},  # type: ignore[misc]
    "-s": lambda T, s, t: -s, "+s": lambda T, s, t: +s, "abs(s)": lambda T, s, t: abs(s),
    "s + None": lambda T, s, t: s + None, "s == None": lambda T, s, t: s == None,  # noqa: E711
    "s[0]": lambda T, s, t: s[0], "s[0, 1]": lambda T, s, t: s[0, 1], "s[[0]]": lambda T, s, t: s[[0]], "t[s > 1]": lambda T, s, t: t[s > 1],
    "s[0] = 1": lambda T, s, t: s.__setitem__(0, 1), "t[0] = s": lambda T, s, t: operator.setitem(t, 0, s),
    "len": lambda T, s, t: len(s), "bool": lambda T, s, t: bool(s[0, 0]), "float": lambda T, s, t: float(s[0, 0]), "int": lambda T, s, t: int(s[0, 0]),
    "in": lambda T, s, t: 1.0 in s, "reversed": lambda T, s, t: reversed(s), "asarray": lambda T, s, t: type(np.asarray(s)),
    "reduce": lambda T, s, t: s.__reduce_ex__(2),
    **{f".{n}": lambda T, s, t, n=n: getattr(s, n) for n in  # type: ignore[misc]
       ["shape", "dtype", "device", "grad", "data", "T", "mT", "requires_grad", "is_leaf", "grad_fn", "ndim", "is_cuda", "_version", "output_nr", "itemsize", "nbytes", "retains_grad", "is_meta"]},
    "setters": lambda T, s, t: [setattr(s, "requires_grad", True), setattr(s, "grad", t), setattr(s, "data", t)],
    **{f".{n}()": lambda T, s, t, n=n: getattr(s, n)() for n in  # type: ignore[misc]
       ["size", "dim", "numel", "stride", "is_contiguous", "tolist", "detach", "requires_grad_", "clone", "element_size", "is_floating_point", "type", "cpu", "storage_offset", "nelement", "ndimension", "sum", "unbind", "exp_", "absolute", "relu"]},
    "view": lambda T, s, t: s.view(4), "to": lambda T, s, t: s.to(T.float64), "expand": lambda T, s, t: s.expand(2, 2),
    "new_tensor": lambda T, s, t: s.new_tensor([1.0]), "as_subclass": lambda T, s, t: s.as_subclass(T.Tensor),
    "backward": lambda T, s, t: s.requires_grad_().sum().backward(), "max": lambda T, s, t: s.max(0), "split": lambda T, s, t: s.split(1),
    "out": lambda T, s, t: T.add(t, t, out=s), "cat": lambda T, s, t: T.cat([t, s], dim=1), "stack": lambda T, s, t: T.stack((t, s), 0),
    "F.relu": lambda T, s, t: T.nn.functional.relu(s), "F.linear": lambda T, s, t: T.nn.functional.linear(t, weight=s),
    "F.softmax": lambda T, s, t: T.nn.functional.softmax(s, -1), "F.gelu": lambda T, s, t: T.nn.functional.gelu(s),
    "F.cross_entropy": lambda T, s, t: T.nn.functional.cross_entropy(s, T.tensor([0, 1])), "F.pad": lambda T, s, t: T.nn.functional.pad(s, (1, 1)),
    "F.dropout": lambda T, s, t: T.nn.functional.dropout(s, 0.0), "sum": lambda T, s, t: T.sum(s, dim=0), "torch.split": lambda T, s, t: T.split(s, 1),
    "einsum": lambda T, s, t: T.einsum("ij,jk", s, t), "solve": lambda T, s, t: T.linalg.solve(s, t), "erf": lambda T, s, t: T.special.erf(s),
    "fft": lambda T, s, t: T.fft.fft(s), "ones_like": lambda T, s, t: T.ones_like(s), "tensor": lambda T, s, t: T.tensor(s),
    "as_tensor": lambda T, s, t: T.as_tensor(s), "where": lambda T, s, t: T.where(t > 0, t, s), "is_tensor": lambda T, s, t: T.is_tensor(s),
    "Linear": lambda T, s, t: T.nn.Linear(2, 2)(s), "Parameter": lambda T, s, t: T.nn.Parameter(s), "tensordot": lambda T, s, t: T.tensordot(s, t, dims=1),
    "broadcast": lambda T, s, t: T.broadcast_tensors(t, s), "equal": lambda T, s, t: T.equal(s, t), "allclose": lambda T, s, t: T.allclose(t, s),
    "result_type": lambda T, s, t: T.result_type(s, t) and 1, "make": lambda T, s, t: T.Tensor._make_subclass(type(s), t),
    "new": lambda T, s, t: type(s)([1.0]), "add_": lambda T, s, t: s.add_(1), "init": lambda T, s, t: T.nn.init.constant_(s, 2.0) is s,
}  # fmt: skip
# An operator of a plain tensor in place gives the plain one; here numpy's own words stand for its arguments.
WORDS = {"asarray", "reduce", "einsum"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_subclass_hears(name: str) -> None:
    keep = name not in WORDS
    got, want = heard(PROGRAMS[name], tt, kwargs=keep), heard(PROGRAMS[name], torch, kwargs=keep)
    assert got == want


INTEGER = ["and_", "or_", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift"]


@pytest.mark.parametrize("name", [*INTEGER, "invert"])
def test_operators_of_integers(name: str) -> None:
    call = getattr(operator, name)
    for program in [lambda T, s, t: call(s)] if name == "invert" else [lambda T, s, t: call(s, 1), lambda T, s, t: call(1, s)]:
        assert heard(program, tt, "int64") == heard(program, torch, "int64")


def ask_foreign(T: Any) -> list[Any]:
    """What a class that is no Tensor is asked."""

    class Q:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), given: Any = None) -> Any:
            return T.overrides.resolve_name(func), [t.__name__ for t in types], len(args), sorted(given or {})

    t, q, F = T.ones(2, 2), Q(), T.nn.functional
    return [
        T.sub(t, q), t - q, q.__class__ and T.linalg.solve(q, t), F.linear(t, q), T.cat([q, t]), T.mean(q, dim=1), T.add(q, 1), t * q, t.sub(q),
        F.relu(q), t @ q, t == q, t[q], t.copy_(q), T.einsum("ij->i", q), T.numel(q), T.diagonal(q, dim1=0, dim2=1), T.where(t > 0, q, t),
        T.add(t, t, out=q), T.full_like(q, 1.0), F.softmax(q, -1), T.stack((t, q)), t.__iadd__(q), T.is_tensor(q), T.matmul(q, q), T.special.erf(q),
        T.equal(t, q), F.dropout(q, 0.1), T.broadcast_tensors(t, q), T.zeros(2, out=q), T.logdet(q), T.linalg.cholesky(q), T.exp(q), T.sum(q, -1),
    ]  # fmt: skip


def test_what_a_foreign_class_hears() -> None:
    for i, (got, want) in enumerate(zip(ask_foreign(tt), ask_foreign(torch), strict=True)):
        assert got == want, i


def ask_mode(T: Any) -> list[Any]:
    """What a mode is asked."""
    calls: list[Any] = []

    class Mode(T.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), given: Any = None) -> Any:
            calls.append((T.overrides.resolve_name(func), len(args), sorted(given or {})))
            return func(*args, **(given or {}))

    t = T.ones(2)
    with Mode():
        T.zeros(2)
        (t + 1).shape, t[0], T.cat([t, t]), t.device, T.rand(2), T.as_tensor([1.0]), T.arange(3), T.is_tensor(t), T.eye(2)
        T.nn.functional.softmax(t, 0)
        (t.requires_grad_() * 2).sum().backward()
        t.grad, -t, t == 1, T.manual_seed(0), T.no_grad(), T.from_numpy(np.ones(2))
    return calls


def test_what_a_mode_hears() -> None:
    assert ask_mode(tt) == ask_mode(torch)


def identities(T: Any) -> dict[str, tuple[str, ...]]:
    """Under which names each public function object stands."""
    spaces = {"torch": T, "Tensor": T.Tensor, "F": T.nn.functional, "linalg": T.linalg, "fft": T.fft, "special": T.special}
    found: dict[int, list[str]] = {}
    for space, holder in spaces.items():
        for name in sorted(set(dir(torch if space == "torch" else getattr(torch, space, torch.nn.functional if space == "F" else None)))):
            value = getattr(holder, name, None) if not name.startswith(("_", "sparse_")) and name not in UNLIKE else None
            if callable(value) and not isinstance(value, type) and not hasattr(value, "__path__"):
                found.setdefault(id(value), []).append(f"{space}.{name}")
    return {n: tuple(names) for names in found.values() for n in names}


UNLIKE = {"dim", "ndimension", "numel", "nelement"}  # one object here, of which torch asks by one name as well


def test_functions_are_as_many_objects_as_in_torch() -> None:
    ours, theirs = identities(tt), identities(torch)
    both = ours.keys() & theirs.keys()
    assert len(both) > 1300
    wrong = {n: (ours[n], theirs[n]) for n in both if not set(ours[n]) & both <= set(theirs[n])}
    assert not wrong


def test_functions_that_can_be_taken_over() -> None:
    ours = {tt.overrides.resolve_name(f) for f in tt.overrides.get_testing_overrides()}
    theirs = {torch.overrides.resolve_name(f) for f in torch.overrides.get_testing_overrides()}
    missing = {
        n for n in theirs - ours if n is not None and not n.startswith("torch.sym_") and n.rpartition(".")[2] not in UNLIKE and _is_here(n)
    }
    assert not missing
    assert len(ours & theirs) > 1260


def _is_here(name: str) -> bool:
    """Whether a function is here, under its name."""
    holder: Any = tt
    for part in name.removeprefix("torch.").replace("functional.", "", name.startswith("torch.functional.")).split("."):
        if part == "__get__":
            return name.split(".")[2] not in ("volatile", "_grad")
        holder = holder.__dict__.get(part) if isinstance(holder, type) else getattr(holder, part, None)
        if holder is None:
            return False
    return callable(holder) and type(holder).__name__ == "function"


def test_copies() -> None:
    for T in (torch, tt):

        class S(T.Tensor):  # type: ignore[misc, name-defined]
            pass

        s = T.ones(2).as_subclass(S)
        assert type(copy.copy(s)) is S
        w = T.ones(2, requires_grad=True)
        y = (w * 2).as_subclass(S)
        assert not y.is_leaf
        (y * y).sum().backward()
        assert w.grad.tolist() == [8, 8]
