"""Tuples of several results: named after the function, printed as PyTorch prints them, the same after pickle, save and load."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt

X = tt.tensor([[3.0, 1.0, 2.0], [1.0, 5.0, 9.0], [2.0, 6.0, 5.0]])
SQUARE = X @ X.T
CALLS: dict[str, Callable[[], Any]] = {
    "aminmax": X.aminmax, "cummax": lambda: X.cummax(0), "cummin": lambda: X.cummin(0), "frexp": X.frexp, "kthvalue": lambda: X.kthvalue(2),
    "max": lambda: X.max(0), "median": lambda: X.median(0), "min": lambda: X.min(dim=1), "mode": lambda: X.mode(0),
    "nanmedian": lambda: X.nanmedian(0), "sort": X.sort, "topk": lambda: X.topk(2), "histogram": lambda: tt.histogram(X, 3),
    "histogramdd": lambda: tt.histogramdd(X, [2, 2, 2]), "geqrf": X.geqrf, "qr": X.qr, "slogdet": X.slogdet, "svd": X.svd,
    "lu_unpack": lambda: tt.lu_unpack(*tt.linalg.lu_factor(X)), "triangular_solve": lambda: tt.triangular_solve(X, X),
    **{"linalg_" + n: (lambda n=n: getattr(tt.linalg, n)(SQUARE)) for n in (
        "cholesky_ex", "eig", "eigh", "inv_ex", "ldl_factor", "ldl_factor_ex", "lu", "lu_factor", "lu_factor_ex", "qr", "slogdet", "svd")},
    "linalg_lstsq": lambda: tt.linalg.lstsq(X, X), "linalg_solve_ex": lambda: tt.linalg.solve_ex(X, X),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_named_after_its_function(name: str) -> None:
    y = CALLS[name]()
    assert type(y) is getattr(tt.return_types, name)
    assert type(pickle.loads(pickle.dumps(y))) is type(y)
    assert repr(y).startswith(f"tritensor.return_types.{name}(\n{y._fields[0]}=")


def test_all_that_are_listed_are_returned_by_something() -> None:
    assert sorted(CALLS) == sorted(tt.return_types.__all__)


def test_parts_are_printed_one_to_a_line() -> None:
    assert str(X[0].sort()) == "tritensor.return_types.sort(\nvalues=tensor([1., 2., 3.]),\nindices=tensor([1, 2, 0]))"


def test_a_saved_result_comes_back_as_it_was() -> None:
    file = io.BytesIO()
    tt.save({"best": X.topk(2)}, file)
    file.seek(0)
    best = tt.load(file)["best"]
    assert isinstance(best, tt.return_types.topk)
    assert best.indices.tolist() == [[0, 2], [2, 1], [1, 2]]


def test_ranks_are_those_of_the_matrices_alone() -> None:
    a, b = tt.rand(1, 4, 3), tt.rand(2, 4, 2)
    assert [tuple(x.shape) for x in tt.linalg.lstsq(a, b)] == [(2, 3, 2), (0,), (1,), (0,)]
    assert [tuple(x.shape) for x in tt.linalg.lstsq(a, b, driver="gelsd")] == [(2, 3, 2), (2, 2), (1,), (1, 3)]


def test_shapes_and_gradients_come_as_pytorch_wraps_them() -> None:
    assert type(tt.broadcast_shapes((2,), (3, 1))) is tt.Size
    assert type(tt.gradient(tt.ones(4))) is tuple
    assert tt.is_storage(tt.ones(2).storage())
    assert tt.is_storage(tt.ones(2).untyped_storage())
    assert not tt.is_storage(tt.ones(2))
    from tritensor.utils.dlpack import from_dlpack, to_dlpack

    assert from_dlpack(to_dlpack(tt.ones(2))).tolist() == [1, 1]
