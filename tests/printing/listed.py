"""Tensors that are printed (T is the library), the options they are printed under, and what is the same but for the libraries' names."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

EXPRESSIONS = [
    # zeros, infinities, nan; whole, fixed and scientific numbers
    "T.tensor([-0., 0.])", "T.tensor([1., nan])", "T.tensor([1., inf])", "T.tensor([1.5, -inf, nan])", "T.tensor([nan])", "T.tensor(inf)", "T.tensor(-0.)", "T.tensor([inf, -inf, nan, 0.])",
    "T.tensor([1e-5, 1])", "T.tensor([1e5, 1.5])", "T.tensor([1e8, 1e8])", "T.tensor([100000008.])", "T.tensor([1000.5, 1.])", "T.tensor([1e-4, 1e-3])", "T.tensor([9.9999e-5])", "T.tensor([-1.5, 0., -0.])",
    "T.tensor([99999.96875, 123.5])", "T.tensor([1e-45, 1e-44])", "T.tensor([5e-324, 1e308], dtype=T.float64)", "T.tensor([16777217.])", "T.tensor([1000., 1., 0.])", "T.tensor([1001., 1.])", "T.tensor([0.99995, 9.99995])",
    "T.tensor([123456789.123], dtype=T.float64)", "T.tensor([-1e-10, 1e10])", "T.tensor([[1e-3, 1e3], [-1., nan]])", "T.tensor([1e38, -1e38])", "T.tensor([0.1 + 0.2], dtype=T.float64)", "T.tensor([3.14159265, 2.71828183])",
    # no dimensions, no elements
    "T.tensor(5)", "T.tensor(2.5)", "T.tensor(True)", "T.tensor(2.5, dtype=T.float64)", "T.tensor([])", "T.tensor([], dtype=T.int64)", "T.zeros(0, 3)", "T.zeros(2, 0, dtype=T.int32)", "T.zeros(0, dtype=T.bool)", "T.zeros(3, 0, 2, dtype=T.bool)",
    "T.zeros(0, requires_grad=True)", "T.zeros(0, 2, dtype=T.float64, requires_grad=True)", "T.tensor([[]])", "T.zeros(0, dtype=T.complex64)", "T.zeros(1, 0, 1)",
    # types
    "T.tensor([True, False])", "T.tensor([[True], [True]])", "T.tensor(False)", "T.tensor([1, -10, 100])", "T.tensor([1], dtype=T.int32)", "T.tensor([2**63 + 5], dtype=T.uint64)", "T.tensor([-128, 5], dtype=T.int8)",
    "T.tensor([65535, 0], dtype=T.uint16)", "T.tensor([2**32 - 1], dtype=T.uint32)", "T.tensor([255, 0], dtype=T.uint8)", "T.tensor([-2**63, 2**63 - 1])", "T.tensor([0.1, 1e-3], dtype=T.float16)", "T.tensor([65504., 1.], dtype=T.float16)",
    "T.tensor([1.5, 2.25], dtype=T.bfloat16)", "T.tensor([1e30, 1.], dtype=T.bfloat16)", "T.tensor([1.5, 2.25]).to(T.float8_e5m2)", "T.tensor([1.5, 300.]).to(T.float8_e4m3fn)", "T.tensor([nan, 0.015625]).to(T.float8_e4m3fn)", "T.tensor(0.5).to(T.float8_e5m2)",
    # complex
    "T.tensor(1 + 2j)", "T.tensor([1 + 2j, -1.5 - 0.j])", "T.tensor([1e9 + 2j, 3 - 4j])", "T.tensor([complex(nan, 1), complex(1, -inf)])", "T.tensor([0.5j] * 30)", "T.tensor([1j], dtype=T.complex128)", "T.tensor([[1 + 1j, 100], [-0.25j, 0]])",
    "T.tensor([1e-6 + 1e6j])", "T.tensor([-1 - 1j, 1 + 1j])", "T.complex(T.arange(2000.), T.ones(2000))",
    # long and deep
    "T.arange(30.)", "T.arange(30)", "T.arange(30.).reshape(2, 15)", "T.arange(2000.)", "T.arange(1001)", "T.arange(1000)", "T.zeros(100, 100)", "T.zeros(3, 2, 2)", "T.ones(7, 7, 30)", "T.zeros(2, 3, 2, 2)", "T.zeros(1000, 2, 1)", "T.zeros(2, 600)",
    "T.zeros(600, 2)", "T.zeros(2, 1, 1, 1, 1)", "T.eye(3)", "T.full((2, 2), -7.25)", "T.arange(24).reshape(2, 3, 4).transpose(0, 2)", "T.arange(40.)[::3]", "T.ones(1).expand(3, 4)", "T.arange(2000).reshape(2, 1000).to(T.int32)",
    "T.arange(1001.).reshape(7, 11, 13)", "T.arange(1200).reshape(3, 4, 5, 20) > 600", "T.linspace(-1, 1, 1500)", "T.arange(1100).reshape(1, 1100, 1)", "T.arange(81.).reshape(3, 3, 3, 3) / 7", "T.tensor([[1.5] * 12] * 2)",
    # what stands behind the values
    "T.tensor(2.5, requires_grad=True)", "T.tensor([2.5], requires_grad=True) * 2", "T.tensor([2.5], dtype=T.float64, requires_grad=True) * 2", "T.arange(17.).double()", "T.arange(16.).double().requires_grad_()", "T.arange(15.).half()",
    "T.arange(18., requires_grad=True) * 1", "T.arange(17., requires_grad=True) * 1", "(T.ones(2, requires_grad=True) + 1).sum()", "T.ones(2, 2, requires_grad=True).transpose(0, 1)", "T.ones(3, requires_grad=True)[1:]", "T.ones(2, requires_grad=True).exp().detach()",
    "T.nn.Parameter(T.ones(2))", "T.nn.Parameter(T.ones(2), requires_grad=False)", "T.nn.Parameter(T.zeros(0, 2))", "T.nn.Parameter(T.ones(2, 2).double())", "T.nn.Parameter(T.tensor(1.5))", "T.ones(2, 3).to(T.float64).view(3, 2)",
    # inside other things, and by format
    "[T.ones(2), T.zeros(1, 1)]", "{'a': T.tensor(1)}", "(T.tensor(1.5),)", "f'{T.tensor(3.14159):.3g}'", "f'{T.tensor(3.0)}'", "f'{T.tensor(7):d}'", "f'{T.tensor([1, 2])}'", "f'{T.tensor(2.5):>8}'", "str(T.ones(2))",
    "f'{T.tensor(True)}'", "'%s' % T.tensor([1.])", "'{:.1e}'.format(T.tensor(12345.678))", "T.Size([2, 3])", "T.ones(2, 3).shape", "T.float32", "T.device('cuda:1')", "T.device('cpu')", "repr(T.finfo(T.float16))", "repr(T.iinfo(T.int32))",
]  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {}, {"precision": 2}, {"precision": 0}, {"precision": 8}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"threshold": 5, "edgeitems": 2, "linewidth": 20},
    {"linewidth": 20}, {"linewidth": 200}, {"sci_mode": True}, {"sci_mode": False}, {"profile": "short"}, {"profile": "full"}, {"profile": "short", "precision": 6}, {"edgeitems": 0},
]  # fmt: skip
UNDER_ALL = slice(0, None, 4)  # of the expressions, those printed under every option; the others under none


def cases() -> list[tuple[dict[str, Any], str]]:
    """(options, expression) of everything that is printed."""
    return [(options, e) for options in OPTIONS for e in (EXPRESSIONS if not options else EXPRESSIONS[UNDER_ALL])]


def printed(library: Any, options: dict[str, Any], expression: str) -> str:
    """What a library prints of an expression, or of the class of its error."""
    library.set_printoptions(profile="default")
    library.set_printoptions(**options)
    found = eval(expression, {"T": library, "inf": np.inf, "nan": np.nan})
    return found if isinstance(found, str) else repr(found)


def named_alike(text: str) -> str:
    """The text with the other library's name for types. That is longer, so that a line with one breaks earlier: such breaks are blanks."""
    text = text.replace("torch.", "tritensor.")
    return re.sub(r",\s+(size|dtype|grad_fn|requires_grad)=", r", \1=", text) if "dtype=" in text else text
