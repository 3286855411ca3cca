"""Refusals of functions over dims, word for word: one line that says what was given and how to mend it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tritensor as tt

M, V, N = tt.ones(2, 3), tt.ones(3), tt.tensor([1, 2, 3])

REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: tt.cumprod(M), TypeError, "cumprod: dim is missing for a tensor of 2 dims; give dim=0 to 1"),
    (lambda: tt.cummax(M, 2), IndexError, "cummax: dim 2 is out of range for a 2-dimensional tensor; it has dims -2 to 1"),
    (
        lambda: tt.logcumsumexp(N, 0),
        tt.DTypeError,
        "logcumsumexp: input is int64; logcumsumexp takes float, complex types; cast it with .to(float32)",
    ),
    (lambda: tt.diff(tt.tensor(1.0)), tt.ShapeError, "diff: input () has no dimension to take differences along; give it at least one"),
    (lambda: tt.diff(V, n=-1), tt.ArgumentError, "diff: n -1 is negative; give 0 or more"),
    (
        lambda: tt.diff(M, prepend=V),
        tt.ShapeError,
        "diff: input (2, 3), prepend (3,): all sizes but that of dim 1 must be equal, as in cat",
    ),
    (lambda: tt.gradient(V, edge_order=3), tt.ArgumentError, "gradient: edge_order is 3; give 1 or 2"),
    (lambda: tt.gradient(M, edge_order=2), tt.ShapeError, "gradient: input (2, 3) has 2 along dim 0; edge_order 2 needs 3"),
    (lambda: tt.gradient(M, spacing=[1.0]), tt.ShapeError, "gradient: 1 spacings for an x of 2 dims; give one for each, or dim"),
    (lambda: tt.gradient(M, spacing=(V, V)), tt.ShapeError, "gradient: spacing (3,) for dim 0 of input (2, 3); give its 2 coordinates"),
    (
        lambda: tt.trapezoid(M, V[:2]),
        tt.ShapeError,
        "trapezoid: x (2,), y (2, 3): there must be one x for each of the 3 values along dim 1",
    ),
    (lambda: tt.trapezoid(V, V, dx=1.0), TypeError, "trapezoid: x and dx=1.0 both say how far apart the samples are; give one"),
    (lambda: tt.cov(tt.ones(2, 2, 2)), tt.ShapeError, "cov: input (2, 2, 2) has 3 dimensions; give at most two, (variables, observations)"),
    (lambda: tt.cov(M, fweights=V), tt.DTypeError, "cov: fweights are float32; cast them to int64"),
    (lambda: tt.cov(M, fweights=-N), tt.ArgumentError, "cov: fweights has a negative weight; give numbers that are not negative"),
    (lambda: tt.histc(V, 0), tt.ArgumentError, "histc: bins 0: give at least 1"),
    (lambda: tt.histc(V, 3, 2, 1), tt.ArgumentError, "histc: the range 2.0 to 1.0 ends before it begins; give its smaller end first"),
    (lambda: tt.histc(V * tt.inf, 3), tt.ArgumentError, "histc: the range inf to inf is not finite; give one that is"),
    (lambda: tt.histogram(V, 3, weight=M), tt.ShapeError, "histogram: input (3,), weight (2, 3): give one weight for each element, (3,)"),
    (lambda: tt.histogramdd(M, [2, 2]), tt.ShapeError, "histogramdd: 2 bins for input (2, 3); give one for each of its last size, 3"),
    (lambda: tt.bincount(V), tt.DTypeError, "bincount: input is float32; cast it to an integer type such as int64"),
    (lambda: tt.bincount(N - 2), tt.ArgumentError, "bincount: input holds -1; only numbers that are not negative can be counted"),
    (lambda: tt.bincount(N, V[:2]), tt.ShapeError, "bincount: input (3,), weights (2,): give one weight for each number"),
    (lambda: tt.renorm(M, 0, 0, 1.0), tt.ArgumentError, "renorm: p 0 is not positive; give a positive number"),
    (lambda: tt.renorm(V, 2, 0, 1.0), tt.ShapeError, "renorm: input (3,) has 1 dimensions; it needs two, so that slices are vectors"),
    (lambda: tt.cdist(M, V), tt.ShapeError, "cdist: x2 (3,) has 1 dimensions; give at least two, (points, coordinates)"),
    (
        lambda: tt.cdist(M, M[:, :2]),
        tt.ShapeError,
        "cdist: x1 (2, 3), x2 (2, 2): the last sizes 3 and 2 differ; give points of as many coordinates",
    ),
    (lambda: tt.cdist(M, M, -1.0), tt.ArgumentError, "cdist: p -1.0 is negative; give 0 or more"),
    (lambda: tt.cdist(M, M.double()), tt.DTypeError, "cdist: x1 is float32, x2 float64; cast one so that both are the same"),
    (lambda: tt.max(M, 2.0), TypeError, "max: dim 2.0 is not an integer; for the larger or smaller of x and a number there is clamp"),
    (lambda: tt.max(M, other=2), TypeError, "max: other is an int; give a tensor (tritensor.tensor(...))"),
]


@pytest.mark.parametrize(("call", "error", "said"), REFUSED, ids=[said.split(":")[0] + str(n) for n, (_, _, said) in enumerate(REFUSED)])
def test_refused(call: Callable[[], object], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == said
