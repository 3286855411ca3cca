"""Questions to every op of the table under vmap, vjp and jvp: batches beside a loop over the examples, tangents and cotangents wherever they lie."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tritensor as tt
from tritensor.dispatch import apply
from tritensor.func import jvp, vjp, vmap
from tritensor.func.rules.registry import RULES, _warned
from tritensor.ground.errors import GradError
from tritensor.ops.array import same_memory
from tritensor.ops.table import Op, Sample, registry

EXAMPLES = 3


def mapped_ops() -> list[Op]:
    """Every op that takes tensors and returns some."""
    return [op for op in registry.values() if op.inputs and not op.mutates]


def examples(x: np.ndarray) -> np.ndarray:
    """Three arrays that are alike: floats by another factor each, others the same or in another order."""
    if x.dtype.kind in "fc":
        return np.stack([x, x * 0.75, x * 1.125]).astype(x.dtype)
    return np.stack([x, x[::-1] if x.ndim else x, x])


def patterns(inputs: tuple[Any, ...]) -> Iterator[tuple[bool, ...]]:
    """Which inputs are batches: all, and each alone."""
    arrays = [isinstance(x, np.ndarray) for x in inputs]
    yield tuple(arrays)
    if sum(arrays) > 1:
        for i, yes in enumerate(arrays):
            if yes:
                yield tuple(k == i for k in range(len(arrays)))


def tensors(sample: Sample, flags: tuple[bool, ...]) -> list[Any]:
    """The inputs, those that `flags` names with a dimension of examples in front."""
    return [
        tt.from_numpy(examples(x) if f else np.array(x)) if isinstance(x, np.ndarray) else x
        for x, f in zip(sample.inputs, flags, strict=True)
    ]


def _listed(y: Any) -> list[Any]:
    return list(y) if isinstance(y, tuple) else [y]


def vmap_findings(op: Op, sample: Sample) -> list[str]:
    """Where the op under vmap is otherwise than in a loop."""
    found = []
    call = functools.partial(apply, op)
    for flags in patterns(sample.inputs):
        given = tensors(sample, flags)
        places = [i for i, x in enumerate(given) if isinstance(x, tt.Tensor)]

        def one(*xs: Any, given: Any = given, places: Any = places) -> Any:
            values = list(given)
            for i, x in zip(places, xs, strict=True):
                values[i] = x
            return call(*values, **sample.attrs)

        parts = [
            [x[k] if f else x for x, f in zip((given[i] for i in places), (flags[i] for i in places), strict=True)] for k in range(EXAMPLES)
        ]
        try:
            want = [_listed(one(*p)) for p in parts]
            tt.evaluate(*[y for w in want for y in w])
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue  # examples that the op refuses
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                got = _listed(
                    vmap(one, in_dims=tuple(0 if flags[i] else None for i in places), randomness="same")(*[given[i] for i in places])
                )
            except Exception as error:
                found.append(f"{flags}: {type(error).__name__}: {error}")
                continue
        for j, y in enumerate(got):
            expected = tt.stack([w[j] for w in want])
            if y.dtype != expected.dtype or y.shape != expected.shape:
                found.append(f"{flags}: output {j}: {y.dtype} {tuple(y.shape)} and not {expected.dtype} {tuple(expected.shape)}")
                continue
            if not np.allclose(y.numpy().astype("c16"), expected.numpy().astype("c16"), 1e-9, 1e-9, equal_nan=True):
                found.append(
                    f"{flags}: output {j}: values differ by {np.nanmax(np.abs(y.numpy().astype('c16') - expected.numpy().astype('c16'))):.3g}"
                )
    return found


def has_rule(op: Op) -> bool:
    """Whether vmap needs no loop for an op."""
    return op.name in RULES or op.broadcasts


def told() -> set[str]:
    """The ops that have run in a loop."""
    return _warned


def laid(x: tt.Tensor) -> Iterator[tt.Tensor]:
    """The same numbers in other places: transposed, with gaps, backwards; and, of numbers that repeat, expanded."""
    dims = tuple(range(len(x.shape)))
    if not dims:
        return
    yield x.permute(dims[::-1]).contiguous().permute(dims[::-1])
    yield tt.stack([x, x * 0], -1)[..., 0]
    yield tt.flip(x, dims)[tuple([slice(None, None, -1) for _ in dims])]
    yield x[tuple([slice(0, 1) for _ in dims])].expand(tuple(x.shape))


def _same(y: Any, want: Any) -> bool:
    return y.shape == want.shape and np.allclose(
        y.detach().numpy().astype("c16"), want.detach().numpy().astype("c16"), 1e-9, 1e-9, equal_nan=True
    )


def _differentiable(op: Op, sample: Sample) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The op as a function of its inputs that have derivatives, and these; what it gives that has derivatives."""
    given = [tt.from_numpy(np.array(x)) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    places = [i for i, x in enumerate(given) if isinstance(x, tt.Tensor) and x.dtype.kind in ("float", "complex")]

    def one(*xs: Any) -> Any:
        values = list(given)
        for i, x in zip(places, xs, strict=True):
            values[i] = x
        out = _listed(apply(op, *values, **sample.attrs))
        return tuple([y for y in out if y.dtype.kind in ("float", "complex")])

    return one, tuple(given[i] for i in places)


def _drawn(x: Any, rng: np.random.Generator) -> tt.Tensor:
    t = rng.standard_normal(tuple(x.shape))
    t = t + 1j * rng.standard_normal(tuple(x.shape)) if x.dtype.kind == "complex" else t
    return tt.from_numpy(np.asarray(t)).to(x.dtype)


def layout_findings(op: Op, sample: Sample, rng: np.random.Generator) -> list[str]:
    """Where tangents and cotangents say something else, or nothing, when they lie otherwise in memory; and outputs whose tangents share memory
    with an input's, so that a write to one would be seen by the other."""
    one, xs = _differentiable(op, sample)
    if op.rule is None or not xs or not one(*xs):
        return []
    found = []
    ts = [_drawn(x, rng) for x in xs]
    for k, others in enumerate(zip(*[laid(t) for t in ts], strict=False)):
        _, want = jvp(one, xs, tuple([t.contiguous() for t in others]))
        outs, got = jvp(one, xs, tuple(others))
        found += [f"tangent {k}: {y.numpy() - w.numpy()}" for y, w in zip(got, want, strict=True) if not _same(y, w)]
        if not op.view and any(same_memory(y._array, t._array) for y in got for t in others):
            found.append(f"tangent {k}: an output's shares memory with an input's")
    outs, pull = vjp(one, *xs)
    gs = [_drawn(y, rng) for y in outs]
    for k, others in enumerate(zip(*[laid(g) for g in gs], strict=False)):
        try:
            wanted = pull(tuple([g.contiguous() for g in others]))
        except GradError:
            break  # an op that refuses these gradients
        given = pull(tuple(others))
        found += [f"cotangent {k}: {y.numpy() - w.numpy()}" for y, w in zip(given, wanted, strict=True) if not _same(y, w)]
    return found


def vjp_findings(op: Op, sample: Sample, rng: np.random.Generator) -> list[str]:
    """Where the gradients of the examples, by vmap of vjp, are otherwise than in a loop."""
    arrays = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    if op.rule is None or not arrays:
        return []
    call = functools.partial(apply, op)
    flags = tuple(i in arrays for i in range(len(sample.inputs)))
    given = tensors(sample, flags)

    def one(*xs: Any) -> Any:
        values = list(given)
        for i, x in zip(arrays, xs, strict=True):
            values[i] = x
        out = _listed(call(*values, **sample.attrs))
        return tuple([y for y in out if y.dtype.kind in ("float", "complex")])

    batch = [given[i] for i in arrays]
    try:
        shapes = [[y.shape for y in one(*[x[k] for x in batch])] for k in range(EXAMPLES)]
    except (RuntimeError, ValueError, TypeError, IndexError):
        return []
    gs = [
        tt.from_numpy(np.asarray(rng.standard_normal((EXAMPLES, *s)))).to(y.dtype)
        for s, y in zip(shapes[0], one(*[x[0] for x in batch]), strict=True)
    ]

    def pulled(xs: Any, g: Any) -> Any:
        _, pull = vjp(one, *xs)
        found = pull(tuple(g))
        return list(found) if isinstance(found, tuple) else [found]

    try:
        want = [pulled([x[k] for x in batch], [g[k] for g in gs]) for k in range(EXAMPLES)]
    except RuntimeError:
        return []  # an op that refuses these gradients
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = vmap(pulled, randomness="same")(batch, gs)
    for j, y in enumerate(got):
        expected = tt.stack([w[j] for w in want])
        if y.shape != expected.shape or not np.allclose(
            y.numpy().astype("c16"), expected.numpy().astype("c16"), 1e-8, 1e-8, equal_nan=True
        ):
            return [f"gradient {j} of the examples: {y.numpy() - expected.numpy()}"]
    return []


def jvp_findings(op: Op, sample: Sample, rng: np.random.Generator) -> list[str]:
    """Where the tangent of an op is not the transpose of its gradient: <J t, g> = <t, J^T g> for real inputs."""
    if op.rule is None:
        return []
    one, xs = _differentiable(op, sample)
    if not xs:
        return []
    ts = tuple(_drawn(x, rng) for x in xs)
    outs, moved = jvp(one, xs, ts)
    leaves = [x.clone().requires_grad_() for x in xs]
    again = one(*leaves)
    gs = [_drawn(y, rng) for y in again]
    pairs = [(y, g) for y, g in zip(again, gs, strict=True) if y.requires_grad]
    pulled = tt.autograd.grad([y for y, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True) if pairs else [None] * len(leaves)

    def inner(a: Any, b: Any) -> float:
        return float(np.sum(np.real(np.conj(a.detach().numpy().astype("c16")) * b.detach().numpy().astype("c16"))))

    left = sum(inner(m, g) for m, g in zip(moved, gs, strict=True))
    right = sum(inner(t, p) for t, p in zip(ts, pulled, strict=True) if p is not None)
    if not np.isclose(left, right, 1e-6, 1e-7) and not (np.isnan(left) or np.isnan(right)):
        return [f"<J t, g> is {left}, <t, J^T g> is {right}"]
    if any(m.shape != y.shape or m.dtype != y.dtype for m, y in zip(moved, outs, strict=True)):
        return ["a tangent is not of its output's shape and type"]
    return []
