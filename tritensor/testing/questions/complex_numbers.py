"""Complex numbers asked of every op that takes them: its gradient, and the gradient of that, against central differences on the CPU.

PyTorch's convention: with a seed g, the gradient G of z satisfies re(sum conj(g) dy) = re(sum conj(G) dz) for every small dz.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dispatch
from tritensor.autograd.engine import grad
from tritensor.ground.errors import DTypeError
from tritensor.ops.table import Op, Sample, Spec
from tritensor.tensor.core import Tensor
from tritensor.testing.questions.cases import name_input, samples

STEP = 1e-5  # of second order: truncation 1e-10, rounding 1e-11
TOLERANCE = 2e-6
# Not asked here but in tests/kernels/factorizations: of random seeds, which ask for what is not defined, there is no gradient.
_PHASE = "vectors are given up to a phase"
ELSEWHERE = {"svd": _PHASE, "eigh": _PHASE, "eig": _PHASE, "cholesky": "imaginary parts of the diagonal are not read"}


def complex_samples(op: Op) -> list[Sample]:
    """The op's smooth samples with an imaginary part added to every floating array; those that its shape rule takes so."""
    rng = np.random.default_rng(3)
    found = []
    for s in samples(op):
        if op.name in ELSEWHERE or not s.smooth or "dtype" in s.attrs or "device" in op.attrs or "seed" in op.attrs or op.mutates:
            continue
        inputs = tuple(_imaginary(x, rng) for x in s.inputs)
        if not any(isinstance(x, np.ndarray) and x.dtype.kind == "c" and 0 < x.size < 200 for x in inputs):
            continue
        try:
            op.shape(*[Spec(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in inputs], **s.attrs)
        except DTypeError:
            continue
        found.append(Sample(*inputs, **s.attrs))
    return found


def _imaginary(x: Any, rng: np.random.Generator) -> Any:
    if not isinstance(x, np.ndarray) or x.dtype not in (np.float64, np.complex128):
        return x
    # Small: away from branch cuts that the real sample keeps to one side of.
    return x if x.dtype.kind == "c" else np.asarray(x + 1j * rng.uniform(-0.3, 0.3, x.shape))


def gradient_findings(op: Op, sample: Sample) -> list[str]:
    """Complaints about the first and second gradients of one call."""
    rng = np.random.default_rng(5)
    inputs = list(sample.inputs)
    places = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    outs, _ = _call(op, sample, inputs)
    for y, said in zip(outs, _infer_specs(op, sample, inputs), strict=True):
        if (y._array.shape, y._array.dtype) != (tuple(said.shape), said.dtype):
            return [f"the shape rule says {said}, the result has {y._array.shape}, {y._array.dtype}"]
    if op.rule is None:
        return []
    seeds = [_random(rng, y._array) if y.requires_grad else None for y in outs]
    if all(g is None for g in seeds):
        return []

    def first(values: list[Any], weights: list[Any], create: bool) -> tuple[list[Any], list[Any]]:
        results, leaves = _call(op, sample, values)
        pairs = [(y, Tensor.wrap(w.copy()).requires_grad_()) for y, w in zip(results, weights, strict=True) if w is not None]
        wanted = [leaves[i] for i in places]
        found = grad([y for y, _ in pairs], wanted, [w for _, w in pairs], create_graph=create, retain_graph=True, allow_unused=True)
        return list(found), wanted

    gradients, _ = first(inputs, seeds, False)
    found = []
    for i, g in zip(places, gradients, strict=True):

        def along(values: list[Any]) -> float:
            results, _ = _call(op, sample, values)
            return sum(_inner(w, y._array) for y, w in zip(results, seeds, strict=True) if w is not None)

        found += _compare(f"gradient of {name_input(op, i)}", along, inputs, i, g, rng)
    if found:
        return found
    made, leaves = first(inputs, seeds, True)
    kept = [(g, _random(rng, g._array)) for g in made if g is not None and g.requires_grad]
    if not kept:
        return []
    second = grad([g for g, _ in kept], leaves, [Tensor.wrap(m) for _, m in kept], allow_unused=True)
    order = [k for k, g in enumerate(made) if g is not None and g.requires_grad]
    for i, s in zip(places, second, strict=True):

        def mixed(values: list[Any]) -> float:
            again, _ = first(values, seeds, False)
            return sum(_inner(m, again[k]._array) for k, (_, m) in zip(order, kept, strict=True) if again[k] is not None)

        found += _compare(f"second derivative by {name_input(op, i)}", mixed, inputs, i, s, rng)
    return found


def _call(op: Op, sample: Sample, values: list[Any]) -> tuple[list[Any], list[Any]]:
    leaves = [Tensor.wrap(x.copy()) if isinstance(x, np.ndarray) else x for x in values]
    for x in leaves:
        if isinstance(x, Tensor) and x._array.dtype.kind in "fc":
            x.requires_grad_()
    out = dispatch.apply(op, *leaves, **sample.attrs)
    return list(out) if isinstance(out, tuple) else [out], leaves


def _infer_specs(op: Op, sample: Sample, values: list[Any]) -> list[Spec]:
    promoted = values
    if op.promote is not None:
        promoted = [x.astype(np.complex128) if isinstance(x, np.ndarray) else x for x in values]
    said = op.shape(*[Spec(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in promoted], **sample.attrs)
    return ([said] if isinstance(said, Spec) else list(said))[: op.public]


def _random(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    x = rng.standard_normal(like.shape)
    return np.asarray(x + 1j * rng.standard_normal(like.shape)) if like.dtype.kind == "c" else np.asarray(x)


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.real(np.sum(np.conj(a) * b)))


def _compare(what: str, function: Any, values: list[Any], i: int, gradient: Any, rng: np.random.Generator) -> list[str]:
    x = values[i]
    if gradient is not None and (gradient._array.shape, gradient._array.dtype) != (x.shape, x.dtype):
        return [f"{what}: {gradient._array.dtype} {gradient._array.shape} for {x.dtype} {x.shape}"]
    for _ in range(2):
        v = _random(rng, x) * np.clip(np.abs(x), 0.05, 1)  # a small input moves in proportion to itself
        ends = []
        for step in (STEP, -STEP):
            moved = list(values)
            moved[i] = np.asarray(x + step * v)
            ends.append(function(moved))
        numeric = (ends[0] - ends[1]) / (2 * STEP)
        exact = 0.0 if gradient is None else _inner(gradient._array, v)
        scale = max(abs(numeric), 0.0 if gradient is None else float(np.linalg.norm(np.asarray(gradient._array * v))), 1e-2)
        if not abs(numeric - exact) <= TOLERANCE * scale * (1 + 1e-3 * abs(ends[0])):
            return [f"{what}: the engine says {exact:.9g} along a direction, differences say {numeric:.9g}"]
    return []
