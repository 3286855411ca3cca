"""Normalisations and softmax in machine code beside numpy's, which computes where there is none: forward and backward, all their ways over memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tritensor.kernels.normalization import channels_cpu, groups_cpu, rows_cpu, softmax_llvm
from tritensor.llvm import compiler
from tritensor.ops.table import registry

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
# elements differ by the rounding of what is written; float32 of what is summed
ROUNDING = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-5, "float64": 1e-11}


@pytest.fixture
def numpy_alone(monkeypatch):
    def call(function):
        with monkeypatch.context() as m:
            for module in (channels_cpu, groups_cpu, rows_cpu, softmax_llvm):
                m.setattr(module, "takes_rows", lambda *_: False)
            return function()

    return call


def drawn(seed, *shape, dtype):
    return (np.random.default_rng(seed).standard_normal(shape) + 0.3).astype(dtype)


def compared(ours, theirs, dtype):
    tolerance = ROUNDING[np.dtype(dtype).name]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            wide = b.astype(np.float64)
            np.testing.assert_allclose(a.astype(np.float64), wide, rtol=tolerance, atol=tolerance * max(np.abs(wide).max(), 1))


def asked(name, numpy_alone, dtype, x, g, vectors, needs, named, **attrs):
    """Forward and backward of an op, by machine code and by numpy; `named`: which outputs backward takes."""
    op = registry[name]
    back = op.cpu_backward.functions[0]

    def run():
        out = op.cpu(x, *vectors, **attrs)
        out = out if isinstance(out, tuple) else (out,)
        up = (g, None, None) if op.public > 1 else g
        rest = [attrs[k] for k in op.cpu_backward.names[0] if k in attrs]
        found = back(up, x, *vectors, *[out[i] for i in named], *rest, needs)
        return (*out, *found)

    compared(run(), numpy_alone(run), dtype)


WANTED = [(True, True, True), (True, False, False), (False, True, True), (False, True, False), (True, False, True)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("rows", "n"), [(700, 3), (3, 1001), (40, 64), (1, 70)])
def test_layer_and_rms_norm(numpy_alone, dtype, rows, n):
    x, g, w, b = drawn(0, rows, n, dtype=dtype), drawn(1, rows, n, dtype=dtype), drawn(2, n, dtype=dtype), drawn(3, n, dtype=dtype)
    for i, needs in enumerate(WANTED):
        vectors = (w if i != 1 or needs[1] else None, b if i not in (1, 3) else None)
        asked("layer_norm", numpy_alone, dtype, x, g, vectors, needs, (1, 2), eps=1e-5, axes=1)
        asked("rms_norm", numpy_alone, dtype, x, g, vectors[:1], needs[:2], (1,), eps=1e-5, axes=1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 3, 12, 13), (700, 3), (40, 20, 3), (70, 96), (3, 1, 900), (9, 5, 7, 7)])
def test_batch_norm(numpy_alone, dtype, shape):
    c = shape[1]
    x, g, w, b = drawn(0, *shape, dtype=dtype), drawn(1, *shape, dtype=dtype), drawn(2, c, dtype=dtype), drawn(3, c, dtype=dtype)
    mean, var = drawn(4, c, dtype=dtype), np.abs(drawn(5, c, dtype=dtype)) + np.asarray(0.5, dtype)
    for i, needs in enumerate(WANTED):
        vectors = (w if i != 1 else None, b if i not in (1, 3) else None)
        asked("batch_norm", numpy_alone, dtype, x, g, vectors, needs, (1, 2), eps=1e-5)
        asked("batch_norm_by", numpy_alone, dtype, x, g, (mean, var, *vectors), (needs[0], i == 0, i == 4, *needs[1:]), (), eps=1e-5)


def test_batch_norm_of_channels_that_lie_last(numpy_alone):
    x, g = (np.ascontiguousarray(drawn(i, 4, 7, 9, 20, dtype=np.float32)).transpose(0, 3, 1, 2) for i in range(2))
    w = drawn(2, 20, dtype=np.float32)
    asked("batch_norm", numpy_alone, np.float32, x, g, (w, w), (True, True, True), (1, 2), eps=1e-5)
    y = registry["batch_norm"].cpu(x, w, w, eps=1e-5)[0]
    assert y.strides == x.strides


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "groups"), [((20, 6, 20), 2), ((20, 6, 4, 5), 6), ((20, 6, 7, 3), 1), ((100, 24), 3), ((30, 12, 7), 4)])
def test_group_norm(numpy_alone, dtype, shape, groups):
    c = shape[1]
    x, g, w, b = drawn(0, *shape, dtype=dtype), drawn(1, *shape, dtype=dtype), drawn(2, c, dtype=dtype), drawn(3, c, dtype=dtype)
    for i, needs in enumerate(WANTED):
        vectors = (w if i != 1 else None, b if i not in (1, 3) else None)
        asked("group_norm", numpy_alone, dtype, x, g, vectors, needs, (1, 2), groups=groups, eps=1e-5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(300, 9), (2, 1100), (5, 8, 64)])
def test_softmax(numpy_alone, dtype, name, shape):
    x, g = (drawn(0, *shape, dtype=np.float64) * 5).astype(dtype), drawn(1, *shape, dtype=dtype)
    op = registry[name]

    def run():
        y = op.cpu(x, dim=-1)
        return y, op.cpu_backward.functions[0](g, y, -1)

    ours = run()
    compared(ours, numpy_alone(run), dtype)
    if dtype is np.float32:
        wide = x.astype(np.float64)
        power = np.exp(wide - wide.max(-1, keepdims=True))
        want = power / power.sum(-1, keepdims=True)
        np.testing.assert_allclose(
            ours[0], want if name == "softmax" else np.log(want), rtol=3e-6, atol=1e-6 * (name != "softmax")
        )  # x - largest is rounded


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite(numpy_alone, value):
    x = drawn(0, 40, 64, dtype=np.float32)
    x[3, 5], x[7] = value, value
    for name, attrs in (
        ("softmax", {"dim": 1}),
        ("log_softmax", {"dim": 1}),
        ("layer_norm", {"eps": 1e-5, "axes": 1}),
        ("rms_norm", {"eps": 1e-5, "axes": 1}),
    ):

        def run(name=name, attrs=attrs):
            out = registry[name].cpu(x, **attrs)
            return np.isfinite(out[0] if isinstance(out, tuple) else out), out[0] if isinstance(out, tuple) else out

        (finite, ours), (expected, theirs) = run(), numpy_alone(run)
        np.testing.assert_array_equal(finite, expected)
        np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-5, atol=1e-6)
