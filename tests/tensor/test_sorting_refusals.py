"""Refusals of the functions that sort and search, in words that name them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tritensor as tt
from tests.loops import each

# x is a (2, 3) of ones on the device that is tested
REFUSED: dict[str, tuple[Callable[[tt.Tensor], object], type[Exception], str]] = {
    "topk of more than there are": (lambda x: x.topk(4), IndexError, r"topk: k 4 of 3 elements along dim 1 of input \(2, 3\); give k from 0 to 3"),
    "topk by a fraction": (lambda x: x.topk(1.5), TypeError, "topk: k 1.5 is not an integer"),
    "the 0th value": (lambda x: x.kthvalue(0), ValueError, r"kthvalue: k 0 of 3 elements along dim 1 of input \(2, 3\); give k from 1 to 3"),
    "kthvalue over its input": (lambda x: x.kthvalue(1, out=(x[:, 0], x[0].long())), RuntimeError, "kthvalue: out shares memory with an argument; give a tensor of its own"),
    "median of nothing": (lambda x: x[:0].median(0), IndexError, r"median: input \(0, 3\) has no element along dim 0; give it at least one"),
    "mode of nothing": (lambda x: x[:, :0].mode(), IndexError, r"mode: input \(2, 0\) has no element along dim 1"),
    "quantile of whole numbers": (lambda x: x.long().quantile(0.5), TypeError, r"quantile: input is int64; quantile takes float32 and float64; cast it with .to\(float32\)"),
    "quantile beyond 1": (lambda x: x.quantile(1.5), ValueError, r"quantile: q 1.5 is outside \[0, 1\]"),
    "quantile of another type": (lambda x: x.quantile(x[0].double()), TypeError, "quantile: q is float64, input is float32; cast q so that both are the same"),
    "quantile of a matrix of levels": (lambda x: x.nanquantile(x), ValueError, r"nanquantile: q \(2, 3\) has 2 dimensions; give a number or a vector"),
    "quantile in another way": (lambda x: x.quantile(0.5, interpolation="cubic"), ValueError, "quantile: interpolation is 'cubic'; it is one of linear, lower, higher"),
    "quantile of nothing": (lambda x: x[:0].quantile(0.5), RuntimeError, r"quantile: input \(0, 3\) has no element; give it at least one"),
    "unique slices without elements": (lambda x: x[:, :0].unique(dim=0), RuntimeError, r"unique: the slices of input \(2, 0\) along dim 0 have no elements"),
    "isin of two numbers": (lambda x: tt.isin(1, 2), TypeError, "isin: elements and test_elements are numbers; give a tensor for at least one"),
    "isin of truth values": (lambda x: tt.isin(x > 0, x > 0), TypeError, "isin: elements is bool; it takes integers and floating types"),
    "searchsorted on no side": (lambda x: tt.searchsorted(x, x, side="up"), ValueError, "searchsorted: side is 'up'; it is 'left' or 'right'"),
    "searchsorted on both sides": (lambda x: tt.searchsorted(x, x, side="left", right=True), ValueError, "searchsorted: side='left' and right=True contradict"),
    "searchsorted of other rows": (lambda x: tt.searchsorted(x, x[:1]), RuntimeError, r"searchsorted: sorted_sequence \(2, 3\) and input \(1, 3\) differ before the last dim"),
    "searchsorted in a number": (lambda x: tt.searchsorted(x.sum(), x), RuntimeError, r"searchsorted: sorted_sequence \(\) for input \(2, 3\); a single number is sought"),
    "searchsorted by fractions": (lambda x: tt.searchsorted(x, x, sorter=x), TypeError, "searchsorted: sorter is float32; it takes int64, such as argsort gives"),
    "searchsorted by fewer": (lambda x: tt.searchsorted(x, x, sorter=x[:1].long()), RuntimeError, r"searchsorted: sorter \(1, 3\) for sorted_sequence \(2, 3\)"),
    "boundaries that are a matrix": (lambda x: tt.bucketize(x, x), RuntimeError, r"bucketize: boundaries \(2, 3\) are not a vector"),
    "less than no position": (lambda x: x.nonzero_static(size=-1), RuntimeError, "nonzero_static: size is -1; give 0 or more"),
    "unravel_index of fractions": (lambda x: tt.unravel_index(x, (2, 3)), TypeError, "unravel_index: indices is float32; it takes integer types"),
    "unravel_index in a negative shape": (lambda x: tt.unravel_index(x.long(), (2, -3)), ValueError, r"unravel_index: shape \(2, -3\) has a negative size"),
    "unravel_index in a broken shape": (lambda x: tt.unravel_index(x.long(), (2, 3.0)), TypeError, "unravel_index: shape holds 3.0; it takes integers"),
}  # fmt: skip


@each(("name", "on"), [(name, on) for name in REFUSED for on in ("cpu", "cuda")])
def test_refused(name: str, on: str) -> None:
    call, error, says = REFUSED[name]
    x = tt.ones(2, 3, device=on)
    with pytest.raises(error, match=f"^{says}"):
        call(x)
    assert x.tolist() == [[1.0] * 3] * 2, "what was refused changed nothing"


def test_levels_and_orders_are_looked_at_on_the_host() -> None:
    x = tt.ones(2, 3)
    with pytest.raises(ValueError, match=r"^quantile: some of q lie outside \[0, 1\]"):
        x.quantile(tt.tensor([0.5, 2.0]))
    with pytest.raises(ValueError, match=r"^searchsorted: sorter points outside 0 to 2"):
        tt.searchsorted(x, x, sorter=tt.full((2, 3), 3))
