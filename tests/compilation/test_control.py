"""torch.compiler: stances, functions that are not compiled, marks, and what is forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.fusion import structure
from tritensor.ops.lazy_array import LazyArray

compiler: Any = tt.compiler


def seen_by(wrap: Any) -> type:
    """The kind of array that an op gives inside of a function that was wrapped so."""
    seen = []
    wrap(lambda x: seen.append(type((x * 2)._array)))(tt.ones(1))
    return seen[0]


def test_stances() -> None:
    assert seen_by(tt.compile) is LazyArray
    with compiler.set_stance("force_eager"):
        assert seen_by(tt.compile) is np.ndarray
        with compiler.set_stance("default"):
            assert seen_by(tt.compile) is LazyArray
        assert seen_by(tt.compile) is np.ndarray
    compiler.set_stance("force_eager")
    try:
        assert seen_by(tt.compile) is np.ndarray
    finally:
        compiler.set_stance("default")

    @compiler.set_stance("force_eager")
    def inside() -> type:
        return seen_by(tt.compile)

    assert (inside(), seen_by(tt.compile)) == (np.ndarray, LazyArray)
    with compiler.set_stance(force_backend="eager"):
        assert seen_by(tt.compile) is np.ndarray
    for stance in ("eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile"):
        with compiler.set_stance(stance):
            assert seen_by(tt.compile) is LazyArray
    with pytest.raises(ValueError, match="set_stance: 'eager' is not known"):
        compiler.set_stance("eager")
    with pytest.raises(RuntimeError, match="cannot have force_backend"):
        compiler.set_stance("force_eager", force_backend="eager")


def test_a_disabled_function_runs_at_once_also_inside() -> None:
    seen = []

    @compiler.disable
    def plain(x: tt.Tensor) -> tt.Tensor:
        seen.append(type((x * 2)._array))
        return x * 2

    @tt.compile
    def outer(x: tt.Tensor) -> tt.Tensor:
        y = plain(x + 1)
        seen.append(type((y + 1)._array))
        return y + 1

    assert outer(tt.ones(1)).item() == 5
    assert seen == [np.ndarray, LazyArray]
    assert plain(tt.ones(1)).item() == 2
    assert plain.__name__ == "plain"
    assert tt.compile(plain)(tt.ones(1)).item() == 2


def test_a_disabled_function_may_call_compiled_ones() -> None:
    w = tt.ones(2, requires_grad=True)
    inner = tt.compile(lambda x: x * w)

    @compiler.disable(recursive=False)
    def plain(x: tt.Tensor) -> tt.Tensor:
        return inner(x) + 1

    @tt.compile
    def outer(x: tt.Tensor) -> tt.Tensor:
        return plain(x * 2).sum()

    for _ in range(2):
        w.grad = None
        outer(tt.ones(2)).backward()
        assert w.grad.tolist() == [2, 2]
    tt.optim.SGD([w], lr=0.1).step()
    assert type((w * 2)._array) is np.ndarray


def test_disabled_modules_and_classes() -> None:
    model = nn.Linear(2, 2)
    disabled = compiler.disable(model)
    assert isinstance(disabled, tt._dynamo.OptimizedModule)
    assert seen_by(lambda f: tt.compile(lambda x: disabled.register_forward_hook(lambda *_: f(x)) and disabled(tt.ones(1, 2)))) is LazyArray

    @compiler.disable
    class Doubled:
        def __call__(self, x: tt.Tensor) -> type:
            return type((x * 2)._array)

    assert tt.compile(lambda x: Doubled()(x))(tt.ones(1)) is np.ndarray
    with pytest.raises(TypeError, match="int cannot be called"):
        compiler.disable(3)


def test_reset_forgets_plans() -> None:
    compiled = tt.compile(lambda x: (x * 2 + 1).sum())
    compiled(tt.ones(3))
    assert structure._plans
    compiler.reset()
    assert not structure._plans
    assert compiled(tt.ones(3)).item() == 9


def test_questions() -> None:
    inside = tt.compile(lambda: (compiler.is_compiling(), compiler.is_dynamo_compiling(), compiler.is_exporting()))
    assert inside() == (False, False, False)
    assert compiler.list_backends() == ["cudagraphs", "eager", "inductor", "tritensor"]
    assert "aot_eager" in compiler.list_backends(None)


def test_default_backends() -> None:
    assert compiler.get_default_backend() == "tritensor"
    compiler.set_default_backend("eager")
    try:
        assert compiler.get_default_backend() == "eager"
        assert seen_by(tt.compile) is np.ndarray
        with pytest.raises(ValueError, match="not known"):
            compiler.set_default_backend("nothing")
    finally:
        compiler.set_default_backend(None)
    assert seen_by(tt.compile) is LazyArray


def test_marks_change_nothing() -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        return x + 1

    assert compiler.allow_in_graph(f) is f
    assert compiler.allow_in_graph([f]) == [f]
    assert compiler.assume_constant_result(f) is f
    assert compiler.nested_compile_region(f) is f
    assert compiler.nested_compile_region()(f) is f
    assert compiler.substitute_in_graph(len)(f) is f
    with pytest.raises(TypeError, match="expects a function"):
        compiler.substitute_in_graph(3)
    compiler.cudagraph_mark_step_begin()
    assert compiler.set_enable_guard_collectives(True) is False
    assert compiler.set_enable_guard_collectives(False) is True
    assert compiler.skip_guard_on_globals_unsafe([1, 2]) == [False, False]
    assert compiler.keep_tensor_guards_unsafe([1], keep_parameters=True) == [False]


def test_functions_of_numpy() -> None:
    f = tt.compile(compiler.wrap_numpy(lambda a, n: (a * n, float(a.sum()))))
    y, total = f(tt.ones(3), 2)
    assert (y.tolist(), total) == ([2, 2, 2], 3)
    with pytest.raises(RuntimeError, match="requires grad"):
        f(tt.ones(3, requires_grad=True), 2)
