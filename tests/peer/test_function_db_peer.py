"""PyTorch's database of autograd.Functions, read once with torch and once with tritensor in torch's place, under every transform and pairs of them."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import tritensor as tt

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


def database(library: Any) -> list[Any]:
    """The file's entries with one library behind them and numpy's numbers as inputs."""
    found = find_spec("torch.testing._internal.autograd_function_db")
    assert found is not None
    assert found.origin is not None
    source = Path(found.origin).read_text()
    rng = np.random.default_rng(0)

    def make_tensor(*shape: Any, requires_grad: bool = False, **_: Any) -> Any:
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return library.from_numpy(np.asarray(rng.uniform(-1, 1, tuple(sizes)))).requires_grad_(requires_grad)

    space: dict[str, Any] = {
        "torch": library, "partial": partial, "make_tensor": make_tensor, "SampleInput": SampleInput, "np": np, "all_types_and": lambda *_: (),
        "OpInfo": lambda name, **said: types.SimpleNamespace(name=name, **said),
    }  # fmt: skip
    exec(source[source.index("# Note: [autograd.Function db]") :], space)
    return space["autograd_function_db"]


THEIRS, OURS = database(torch), database(tt)


def flat(x: Any) -> list[Any]:
    if isinstance(x, tuple | list):
        return [t for part in x for t in flat(part)]
    return [x] if hasattr(x, "requires_grad") else []


def squares(ys: Any) -> Any:
    """Of what has a gradient, the sum of squares."""
    parts = [(y * y).sum() for y in flat(ys) if y.dtype.is_floating_point]
    return sum(parts[1:], parts[0])


class Asked:
    """A sample of an entry under each transform: what it gives, or the class of what it raises."""

    def __init__(self, library: Any, entry: Any, sample: Any) -> None:
        self.source, self.func, self.op, self.sample = library, library.func, entry.op, sample
        given = (sample.input, *sample.args)
        self.plain = [a.detach() if hasattr(a, "detach") else a for a in given]
        self.places = [i for i, a in enumerate(self.plain) if hasattr(a, "detach") and a.dtype.is_floating_point]
        self.xs = [self.plain[i] for i in self.places]
        self.argnums = tuple(range(len(self.xs)))
        self.many = [library.stack([x, x * 0.5, x * 2]) for x in self.xs]

    def call(self, *xs: Any) -> Any:
        args = list(self.plain)
        for i, x in zip(self.places, xs, strict=True):
            args[i] = x
        return self.op(*args, **self.sample.kwargs)

    def recorded(self, twice: bool) -> Any:
        xs = [x.clone().requires_grad_() for x in self.xs]
        grad = self.source.autograd.grad
        first = grad(squares(self.call(*xs)), xs, allow_unused=True, create_graph=twice)
        if not twice:
            return first
        followed = [g for g in first if g is not None and g.requires_grad]
        return grad(squares(followed), xs, allow_unused=True) if followed else ()

    def ways(self) -> dict[str, Callable[[], Any]]:
        f, library, call, xs, many, at = self.func, self.source, self.call, self.xs, self.many, self.argnums
        loss = lambda *zs: squares(call(*zs))  # noqa: E731
        moved = lambda *zs: f.jvp(call, zs, tuple(z.cos() for z in zs))  # noqa: E731
        return {
            "called": lambda: call(*xs),
            "backward": lambda: self.recorded(False),
            "backward twice": lambda: self.recorded(True),
            "grad": lambda: f.grad(loss, at)(*xs),
            "vjp": lambda: f.vjp(call, *xs)[0],
            "jvp": lambda: moved(*xs),
            "jacrev": lambda: f.jacrev(call, at)(*xs),
            "jacfwd": lambda: f.jacfwd(call, at)(*xs),
            "grad of grad": lambda: f.grad(lambda *zs: squares(f.grad(loss, at)(*zs)), at)(*xs),
            "vmap": lambda: f.vmap(call)(*many),
            "vmap of the first": lambda: f.vmap(call, in_dims=(0, *[None] * (len(xs) - 1)))(many[0], *xs[1:]),
            "vmap of the last dimension": lambda: f.vmap(call, in_dims=-1)(*[library.stack([x, x * 0.5], -1) for x in xs]),
            "vmap of grad": lambda: f.vmap(f.grad(loss, at))(*many),
            "grad of vmap": lambda: f.grad(lambda *zs: squares(f.vmap(call)(*zs)), at)(*many),
            "vmap of jvp": lambda: f.vmap(moved)(*many),
            "jvp of vmap": lambda: f.jvp(f.vmap(call), tuple(many), tuple(z.cos() for z in many)),
            "vmap of vmap": lambda: f.vmap(f.vmap(call))(*[library.stack([z, z * 0.3]) for z in many]),
        }

    def found(self, way: str) -> list[np.ndarray] | str:
        try:
            return [y.detach().numpy() for y in flat(self.ways()[way]())]
        except Exception as error:
            return "raised" if isinstance(error, RuntimeError) else type(error).__name__


WAYS = list(Asked(tt, OURS[0], next(iter(OURS[0].sample_inputs_func(OURS[0], "cpu", tt.float64, False)))).ways())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("index", [pytest.param(i, id=entry.name) for i, entry in enumerate(THEIRS)])
def test_a_function_of_the_database(index: int, way: str) -> None:
    samples = [
        list(entries[index].sample_inputs_func(entries[index], "cpu", library.float64, False))
        for entries, library in ((THEIRS, torch), (OURS, tt))
    ]
    for theirs, ours in zip(*samples, strict=True):
        for i, x in enumerate(flat([ours.input, ours.args])):
            x.copy_(tt.from_numpy(flat([theirs.input, theirs.args])[i].numpy().copy()))
        want, got = Asked(torch, THEIRS[index], theirs).found(way), Asked(tt, OURS[index], ours).found(way)
        if isinstance(want, str):
            assert got == want
            continue
        assert len(got) == len(want), got
        for a, b in zip(got, want, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, 1e-9, 1e-12)
