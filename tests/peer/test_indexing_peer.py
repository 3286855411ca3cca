"""Indices drawn by chance, get and set, gradients too: every one that torch takes gives the same here, and none of the others is taken for another."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tritensor as tt

pytestmark = pytest.mark.peer

EXAMPLES = int(os.environ.get("TRITENSOR_EXAMPLES", "300"))
many = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
few = settings(max_examples=max(EXAMPLES // 15, 10), deadline=None, suppress_health_check=list(HealthCheck))


class Index:
    """An index in a form of its own, spelled for either library."""

    def __init__(self, entries: tuple[Any, ...], bare: bool) -> None:
        self.entries = entries
        self.bare = bare and len(entries) == 1

    def spelled(self, make: Any) -> Any:
        found = tuple(make(*e) if isinstance(e, tuple) else e for e in self.entries)
        return found[0] if self.bare else found

    def __repr__(self) -> str:
        return f"Index({self.entries}, bare={self.bare})"


def make_theirs(kind: str, value: np.ndarray) -> Any:
    return value.tolist() if kind == "list" else value if kind == "array" else torch.from_numpy(value)


def make_ours(on: str) -> Any:
    def make(kind: str, value: np.ndarray) -> Any:
        return value.tolist() if kind == "list" else value if kind == "array" else tt.tensor(value, device=on)

    return make


@st.composite
def arrays_of_indices(draw: Any, n: int, common: tuple[int, ...]) -> tuple[str, np.ndarray]:
    shape = draw(st.sampled_from([common, (1,) * len(common), common[-1:]])) if common else ()
    size = int(np.prod(shape))
    values = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
    kind = draw(st.sampled_from(["tensor", "tensor", "list", "array"]))
    dtype = np.int32 if kind == "tensor" and draw(st.booleans()) else np.int64
    if kind == "list" and not shape:
        kind = "tensor"
    return kind, np.array(values, dtype).reshape(shape)


@st.composite
def masks(draw: Any, shape: tuple[int, ...]) -> tuple[str, np.ndarray]:
    size = int(np.prod(shape))
    values = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(shape)
    kind = draw(st.sampled_from(["tensor", "tensor", "array", "list"]))
    if kind == "tensor" and draw(st.integers(0, 3)) == 0:
        return kind, values.astype(np.uint8)
    # torch counts a mask of several dimensions for one where it is a list or an array, and goes astray at the next Ellipsis
    return ("tensor" if len(shape) != 1 else kind), values


@st.composite
def cases(draw: Any, small: bool = False) -> tuple[tuple[int, ...], Index]:
    """A shape and an index into it, of ints, slices, None, Ellipsis, truth values, lists, arrays, tensors and masks."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3 if small else 4)))
    common = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 3), (2, 1), (0,)]))
    entries: list[Any] = []
    d, ellipsis = 0, False
    while len(entries) < len(shape) + 3:
        left = len(shape) - d
        kind = draw(st.sampled_from(["int", "slice", "slice", "none", "dots", "truth", "index", "index", "mask", "stop"]))
        if kind == "stop" or (not left and kind in ("int", "slice", "index", "mask") and draw(st.integers(0, 9))):
            break
        n = shape[d] if d < len(shape) else 1
        if kind == "int":
            entries.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            ends = st.none() | st.integers(-n - 2, n + 2)
            entries.append(slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3))))
        elif kind == "none":
            entries.append(None)
            continue
        elif kind == "dots":
            if ellipsis:
                continue
            ellipsis = True
            entries.append(Ellipsis)
            d += draw(st.integers(0, max(left, 0)))
            continue
        elif kind == "truth":
            entries.append(draw(st.booleans()) if draw(st.booleans()) else ("tensor", np.array(draw(st.booleans()))))
            continue
        elif kind == "index":
            entries.append(draw(arrays_of_indices(n, common)))
        else:
            m = draw(st.integers(1, max(min(left, 2), 1)))
            entries.append(draw(masks(shape[d : d + m])))
            d += m - 1
        d += 1
    return shape, Index(tuple(entries), draw(st.booleans()))


def quiet() -> None:
    warnings.simplefilter("ignore")  # uint8 masks warn in both


def values(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)


def check_get(shape: tuple[int, ...], index: Index, on: str) -> None:
    x = values(shape)
    with warnings.catch_warnings():
        quiet()
        theirs, ours = torch.from_numpy(x.copy()), tt.tensor(x, device=on)
        try:
            want = theirs[index.spelled(make_theirs)]
        except (IndexError, TypeError, ValueError, RuntimeError):
            with pytest.raises((IndexError, TypeError, ValueError, RuntimeError)):
                ours[index.spelled(make_ours(on))]
            return
        got = ours[index.spelled(make_ours(on))]
        assert tuple(got.shape) == tuple(want.shape), index
        np.testing.assert_array_equal(got.cpu().numpy(), want.numpy(), err_msg=repr(index))
        if want.numel() and want._is_view():
            assert got._base is not None, index
            got.add_(100)
            want.add_(100)
            np.testing.assert_array_equal(ours.cpu().numpy(), theirs.numpy(), err_msg=repr(index))


@many
@given(cases())
def test_get(case: Any) -> None:
    check_get(*case, "cpu")


@few
@given(cases())
def test_get_on_the_emulated_device(case: Any) -> None:
    check_get(*case, "cuda")


def check_set(shape: tuple[int, ...], index: Index, how: str, on: str) -> None:
    """Values are one for all where positions repeat, since which of several stays is nobody's promise."""
    x = values(shape)
    with warnings.catch_warnings():
        quiet()
        theirs, ours = torch.from_numpy(x.copy()), tt.tensor(x, device=on)
        try:
            places = torch.arange(x.size).reshape(shape)[index.spelled(make_theirs)].reshape(-1)
            taken = tuple(theirs[index.spelled(make_theirs)].shape)
        except (IndexError, TypeError, ValueError, RuntimeError):
            return
        once = len(set(places.tolist())) == places.numel()
        if how == "number" or not once:
            value: Any = -7.0
            mine: Any = value
        else:
            given_shape = taken if how == "all" else taken[1:] if how == "row" else (1, *taken)
            content = np.asarray(-1.0 - np.arange(np.prod(given_shape, dtype=int)).reshape(given_shape))
            value, mine = torch.from_numpy(content), tt.tensor(content, device=on)
        try:
            theirs[index.spelled(make_theirs)] = value
        except (IndexError, TypeError, ValueError, RuntimeError):
            return
        ours[index.spelled(make_ours(on))] = mine
        np.testing.assert_array_equal(ours.cpu().numpy(), theirs.numpy(), err_msg=repr(index))


HOW = st.sampled_from(["number", "all", "row", "more"])


@many
@given(cases(), HOW)
def test_set(case: Any, how: str) -> None:
    check_set(*case, how, "cpu")


@few
@given(cases(), HOW)
def test_set_on_the_emulated_device(case: Any, how: str) -> None:
    check_set(*case, how, "cuda")


@many
@given(cases(small=True), st.booleans())
def test_gradients(case: Any, write: bool) -> None:
    shape, index = case
    x = values(shape)
    found: list[list[np.ndarray]] = []
    with warnings.catch_warnings():
        quiet()
        for library, make in ((torch, make_theirs), (tt, make_ours("cpu"))):
            leaf = library.tensor(x, dtype=library.float64, requires_grad=True)
            weight = library.tensor(x * x, dtype=library.float64)
            try:
                if write:
                    taken = leaf.detach()[index.spelled(make)]
                    value = library.tensor(3.0, dtype=library.float64, requires_grad=True)
                    y = leaf * 2
                    y[index.spelled(make)] = value * library.ones(tuple(taken.shape), dtype=library.float64)
                    (y * weight).sum().backward()
                    places = np.ravel(library.arange(x.size).reshape(shape)[index.spelled(make)].numpy()).tolist()
                    found.append([leaf.grad.numpy()])
                    if len(set(places)) == len(places):  # torch gives a value that is written nowhere no gradient at all
                        found[-1].append(np.zeros(()) if value.grad is None else value.grad.numpy())
                else:
                    y = leaf[index.spelled(make)]
                    (y * y).sum().backward()
                    found.append([leaf.grad.numpy()])
            except (IndexError, TypeError, ValueError, RuntimeError):
                if library is torch:
                    return
                raise
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, err_msg=repr(index))
