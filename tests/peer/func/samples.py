"""PyTorch's sample database under vmap: our functions mapped over a batch beside a loop over it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as trees

import tritensor as tt
from tests.peer.opinfo.resolve import resolved
from tests.peer.opinfo.translate import translated

# Entries whose answer is no function of the examples alone, or of no fixed shape.
LEFT_OUT = {
    "argwhere": "as many rows as there are elements that are not 0",
    "empty_like": "nothing is written",
    "new_empty": "nothing is written",
    "new_empty_strided": "nothing is written",
    "resize_": "a batch has no memory to grow into",
}


# Entries of which random samples are left out: outside of vmap the op draws in its own order.
DRAWS = {"nn.functional.scaled_dot_product_attention": "dropout_p"}


def entries() -> list[Any]:
    """The entries that we have a function for."""
    return [op for op in op_db if op.name not in LEFT_OUT and resolved(op)[0] is not None]


def _batch(x: torch.Tensor) -> torch.Tensor:
    moved = x.is_floating_point() or x.is_complex()
    return torch.stack([x, x * 0.75 if moved else x]).detach()


def _results(f: Callable[..., Any], values: list[Any], spec: Any, given: dict[int, Any]) -> list[Any]:
    """What f makes of a sample with some of its tensors replaced, as a list of tensors."""
    flat, shape = trees.tree_flatten(translated(trees.tree_unflatten(values, spec), {}))
    for i, x in given.items():
        flat[i] = x
    first, args, kwargs = trees.tree_unflatten(flat, shape)
    return [y for y in trees.tree_leaves(f(first, *args, **kwargs)) if isinstance(y, tt.Tensor)]


def _samples(op: Any, most: int) -> Iterator[tuple[list[Any], Any, list[int]]]:
    kind = torch.float64 if torch.float64 in op.dtypes else torch.int64
    try:
        found = list(op.sample_inputs("cpu", kind))[:most]
    except Exception:
        return
    for sample in found:
        if sample.kwargs.get(DRAWS.get(op.name)):
            continue
        flat, spec = trees.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
        if places and all(flat[i].layout == torch.strided for i in places):
            yield [x.detach() if isinstance(x, torch.Tensor) else x for x in flat], spec, places


def findings(op: Any, most: int) -> Iterator[str]:
    """What an entry's samples, all tensors mapped and the first alone, give otherwise than a loop; what torch refuses to map is no finding."""
    mine = resolved(op)[0]
    assert mine is not None
    for n, (flat, spec, places) in enumerate(_samples(op, most)):
        for chosen in (places, places[:1]) if len(places) > 1 else (places,):
            theirs = [_batch(flat[i]) for i in chosen]
            batch = [tt.from_numpy(b.numpy().copy()) for b in theirs]
            try:
                want = [_results(mine, flat, spec, {i: b[k].clone() for i, b in zip(chosen, batch, strict=True)}) for k in range(2)]
            except Exception:
                continue
            if any(a.shape != b.shape for a, b in zip(*want, strict=True)):
                continue
            said = _compared(mine, flat, spec, chosen, batch, want)
            if said and not _refused(op, flat, spec, chosen, theirs):
                yield f"sample {n}, mapped {len(chosen)}: {said}"


def _compared(mine: Any, flat: list[Any], spec: Any, chosen: list[int], batch: list[Any], want: list[list[Any]]) -> str:
    tt.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = tt.vmap(lambda *xs: _results(mine, flat, spec, dict(zip(chosen, xs, strict=True))), randomness="same")(*batch)
        for y, pair in zip(got, zip(*want, strict=True), strict=True):
            expected = np.stack([w.detach().numpy() for w in pair])
            found = y.detach().numpy()
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(found.astype("c16"), expected.astype("c16"), 1e-6, 1e-7, equal_nan=True)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def _refused(op: Any, flat: list[Any], spec: Any, chosen: list[int], batch: list[torch.Tensor]) -> bool:
    """Whether torch cannot map this either."""

    def one(*xs: torch.Tensor) -> Any:
        values = list(flat)
        for i, x in zip(chosen, xs, strict=True):
            values[i] = x
        first, args, kwargs = trees.tree_unflatten(values, spec)
        return tuple(y for y in trees.tree_leaves(op.op(first, *args, **kwargs)) if isinstance(y, torch.Tensor))

    try:
        torch.func.vmap(one, randomness="same")(*batch)
    except Exception:
        return True
    return False
