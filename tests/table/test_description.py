"""Answer of `help(tt.ops.softmax)`: every op has its name, module, signature and a documentation that is true."""

from __future__ import annotations

import inspect
import pydoc

import tritensor as tt
import tritensor.kernels
from tests.loops import each
from tritensor.ops.table import Op, ops, registry


def test_help_teaches() -> None:
    said = pydoc.plain(pydoc.render_doc(ops.softmax))
    assert "function softmax in module tritensor.kernels.normalization.softmax" in said
    assert "softmax(x: 'Tensor', /, *, dim: 'int') -> 'Tensor'" in said
    assert "e^x / sum e^x along dim." in said
    assert "its gradient uses dim, y." in said
    assert "normalization/softmax.py:" in said


@each("op", registry.values(), ids=lambda op: op.name)
def test_every_op_is_described(op: Op) -> None:
    call = getattr(ops, op.name)
    assert call.__name__ == call.__qualname__ == op.name
    assert call.__module__ == op.owner.module
    assert call.__module__.startswith("tritensor.kernels.")
    found = inspect.signature(call)
    assert list(found.parameters) == [*op.inputs, *op.attrs]
    assert [n for n, p in found.parameters.items() if p.kind is p.KEYWORD_ONLY] == list(op.attrs)
    assert {n: p.default for n, p in found.parameters.items() if p.kind is p.KEYWORD_ONLY} == op.attrs
    assert (found.return_annotation is None) == bool(op.mutates)
    text = call.__doc__ or ""
    assert ("Has no gradient." in text) == (op.rule is None)
    assert all(n in text for n in (*op.inputs, *op.attrs, *op.outputs, *op.dtypes))


def test_outputs_that_nobody_sees_are_told_apart() -> None:
    assert "Outputs: y; for backward alone rstd." in (ops.rms_norm.__doc__ or "")
    assert inspect.signature(ops.max_dim).return_annotation == "tuple[Tensor, Tensor]"
    assert str(inspect.signature(ops.cat)).startswith("(*xs: 'Tensor', dim")
    assert "Add arguments element-wise." in (ops.add.__doc__ or "")


def test_a_watched_call_is_described_too() -> None:
    with tt.autocast("cpu"):
        assert "Inputs: a, b." in (ops.matmul.__doc__ or "")
        assert list(inspect.signature(ops.matmul).parameters) == ["a", "b"]
