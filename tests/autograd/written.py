"""Calls a function, writes in place into one of its inputs or outputs, runs backward, and says whether the gradients are right, wrong, or raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

RIGHT, RAISES, WRONG = "right", "raises", "wrong"


class Write(NamedTuple):
    """A write to number `place` of what a call was given ("input") or gave ("output", which the graph records; "values", under no_grad)."""

    what: str
    place: int


class Call(NamedTuple):
    """A call that is made anew each time: `make(leaves)` gives its results and the tensors that it was given, of which those of `leaves` require grad."""

    library: Any
    make: Callable[[tuple[int, ...]], tuple[Any, list[Any]]]


def tensors(library: Any, value: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors(library, v)] if isinstance(value, tuple | list) else []


def inexact(t: Any) -> bool:
    """Whether a tensor can have a gradient."""
    return bool(t.is_floating_point() or t.is_complex())


def _weights(library: Any, t: Any, step: int) -> Any:
    """What the elements of a result are multiplied by before they are summed."""
    places = library.arange(1, t.numel() + 1, dtype=library.float64, device=t.device)
    return library.cos(step + places).reshape(t.shape).to(t.dtype)


def _harm(library: Any, t: Any) -> None:
    """Put other values into a tensor's memory."""
    with library.no_grad():
        if inexact(t):
            t.mul_(-1.5).add_(1.25)
        else:
            t.zero_()


def gradients(
    call: Call, leaves: tuple[int, ...], written: Sequence[Write] = (), order: int = 1, doubled: bool = False
) -> list[Any] | None:
    """The gradients of a weighted sum of a call's results, and with order 2 those of a weighted sum of them; None where there are none.

    What `written` says is written comes between; with `doubled` the results that it names count twice instead: what a recorded `y.mul_(2)` comes to.
    """
    T = call.library
    found, given = call.make(leaves)
    outs = tensors(T, found)
    twice = {w.place for w in written if w.what == "output"} if doubled else set()
    for write in () if doubled else written:
        if write.what == "output":
            outs[write.place].mul_(2)
        else:
            _harm(T, (given if write.what == "input" else outs)[write.place])
    results = [(k, t) for k, t in enumerate(outs) if t.requires_grad and inexact(t)]
    wanted = [given[i] for i in leaves]
    if not results or not wanted:
        return None
    weights = [_weights(T, t, k) * (2 if k in twice else 1) for k, t in results]
    first = T.autograd.grad([t for _, t in results], wanted, weights, allow_unused=True, create_graph=order > 1)
    again = [(k, g) for k, g in enumerate(first) if order > 1 and g is not None and g.requires_grad]
    if not again:
        return list(first)
    second = T.autograd.grad([g for _, g in again], wanted, [_weights(T, g, 7 + k) for k, g in again], allow_unused=True)
    return [*first, *second]


def outcome(call: Call, leaves: tuple[int, ...], written: Sequence[Write], order: int = 1) -> str:
    """What becomes of the gradients where tensors are written."""
    clean = gradients(call, leaves, written, order, doubled=True)
    try:
        found = gradients(call, leaves, written, order)
    except RuntimeError:
        return RAISES
    return RIGHT if _same(call.library, clean, found) else WRONG


def _same(library: Any, one: Sequence[Any] | None, other: Sequence[Any] | None) -> bool:
    if one is None or other is None or len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if (a is None) != (b is None):
            return False
        if a is not None and not library.allclose(a.detach(), b.detach(), rtol=1e-9, atol=1e-12, equal_nan=True):
            return False
    return True


def writes(call: Call, leaves: tuple[int, ...]) -> list[Write]:
    """All writes that there are to what a call was given and gave."""
    found, given = call.make(leaves)
    outs = tensors(call.library, found)
    inputs = [Write("input", i) for i in range(len(given))]
    recorded = [Write("output", i) for i, t in enumerate(outs) if t.requires_grad]
    return [*inputs, *recorded, *[Write("values", i) for i in range(len(outs))]]


def flags(call: Call, leaves: tuple[int, ...]) -> list[tuple[bool, bool, bool]]:
    """Of each result: whether it requires grad, is a leaf, has a node."""
    outs = tensors(call.library, call.make(leaves)[0])
    return [(t.requires_grad, t.is_leaf, t.grad_fn is not None) for t in outs]
