"""What a write between a call and its backward does to the gradients: nothing, an error, or harm; asked of either library in the same words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

RIGHT, RAISES, WRONG = "right", "raises", "wrong"


class Write(NamedTuple):
    """A write to one of the tensors that a call was given ("input"), or gave ("output": recorded; "values": under no_grad)."""

    what: str
    place: int


class Call(NamedTuple):
    """A call that is made anew each time: `make` gives the function's results and the tensors that it was given, those of `leaves` requiring grad."""

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
    w = library.cos(step + library.arange(1, t.numel() + 1, dtype=library.float64)).reshape(t.shape)
    return w.to(t.dtype)


def _harm(library: Any, t: Any) -> None:
    """Other values in a tensor's memory."""
    with library.no_grad():
        if inexact(t):
            t.mul_(-1.5).add_(1.25)
        else:
            t.zero_()


def gradients(call: Call, leaves: tuple[int, ...], write: Write | None, order: int, doubled: int = -1) -> list[Any] | None:
    """The gradients of a weighted sum of a call's results, and with order 2 those of a weighted sum of them; None where there are none.

    `write` comes between; `doubled` is the result that counts twice, which a recorded `y.mul_(2)` makes of it.
    """
    T = call.library
    found, given = call.make(leaves)
    outs = tensors(T, found)
    if write is not None:
        if write.what == "input":
            _harm(T, given[write.place])
        elif write.what == "values":
            _harm(T, outs[write.place])
        else:
            outs[write.place].mul_(2)
    results = [(k, t) for k, t in enumerate(outs) if t.requires_grad and inexact(t)]
    wanted = [given[i] for i in leaves]
    if not results or not wanted:
        return None
    weights = [_weights(T, t, k) * (2 if k == doubled else 1) for k, t in results]
    first = T.autograd.grad([t for _, t in results], wanted, weights, allow_unused=True, create_graph=order > 1)
    if order == 1:
        return list(first)
    again = [(k, g) for k, g in enumerate(first) if g is not None and g.requires_grad]
    if not again:
        return list(first)
    second = T.autograd.grad([g for _, g in again], wanted, [_weights(T, g, 7 + k) for k, g in again], allow_unused=True)
    return [*first, *second]


def outcome(call: Call, leaves: tuple[int, ...], write: Write, order: int, clean: Sequence[Any]) -> str:
    """What becomes of the gradients, which are `clean` without the write."""
    try:
        found = gradients(call, leaves, write, order)
    except RuntimeError:
        return RAISES
    if found is None:
        return WRONG
    for one, other in zip(clean, found, strict=True):
        if (one is None) != (other is None):
            return WRONG
        if one is not None and not call.library.allclose(one.detach(), other.detach(), rtol=1e-9, atol=1e-12, equal_nan=True):
            return WRONG
    return RIGHT


def writes(call: Call, leaves: tuple[int, ...]) -> list[Write]:
    """All writes that there are to what a call was given and gave."""
    found, given = call.make(leaves)
    outs = tensors(call.library, found)
    inputs = [Write("input", i) for i in range(len(given))]
    recorded = [Write("output", i) for i, t in enumerate(outs) if t.requires_grad]
    return [*inputs, *recorded, *[Write("values", i) for i in range(len(outs))]]
