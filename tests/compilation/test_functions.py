"""Compiled functions of every kind: what they are called, what they give, and what is refused."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

import tritensor as tt
from tritensor.ops.lazy_array import LazyArray


def twice(x: tt.Tensor) -> tt.Tensor:
    """2 x."""
    return x * 2


def kind_of(x: tt.Tensor) -> type:
    return type(x._array)


def test_a_function_keeps_its_names() -> None:
    compiled = tt.compile(twice)
    assert (compiled.__name__, compiled.__doc__, compiled.__wrapped__) == ("twice", "2 x.", twice)
    assert compiled._torchdynamo_orig_callable is twice
    assert inspect.signature(compiled) == inspect.signature(twice)
    assert tt.compile(compiled)._torchdynamo_orig_callable is twice
    assert compiled(tt.ones(2)).tolist() == [2.0, 2.0]


def test_decorators() -> None:
    @tt.compile
    def f(x: tt.Tensor) -> tt.Tensor:
        return x + 1

    @tt.compile(fullgraph=True, dynamic=True, mode="reduce-overhead", recompile_limit=3, isolate_recompiles=True, name="more")
    def g(x: tt.Tensor) -> tt.Tensor:
        return f(x) + 1

    assert g(tt.ones(1)).item() == 3


def test_methods() -> None:
    class Counted:
        calls = 0

        @tt.compile
        def plain(self, x: tt.Tensor) -> tt.Tensor:
            self.calls += 1
            return x + self.calls

        @classmethod
        @tt.compile
        def of_class(cls, x: tt.Tensor) -> tt.Tensor:
            return x + cls.calls

        @staticmethod
        @tt.compile
        def static(x: tt.Tensor) -> tt.Tensor:
            return x + 7

        def __call__(self, x: tt.Tensor) -> tt.Tensor:
            return x + 8

    counted = Counted()
    x = tt.zeros(1)
    assert [counted.plain(x).item(), counted.plain(x).item(), Counted.of_class(x).item(), Counted.static(x).item()] == [1, 2, 0, 7]
    assert tt.compile(counted)(x).item() == 8
    assert tt.compile(counted.plain)(x).item() == 3
    assert tt.compile(Counted) is Counted
    assert counted(x).item() == 8


def test_built_in_functions() -> None:
    assert tt.compile(len)([1, 2]) == 2
    assert tt.compile(tt.add)(tt.ones(1), 1).item() == 2


def test_recursion() -> None:
    @tt.compile
    def factorial(x: tt.Tensor, n: int) -> tt.Tensor:
        return x if n == 0 else factorial(x * n, n - 1)

    assert factorial(tt.ones(1), 5).item() == 120


def test_generators_are_compiled_step_by_step() -> None:
    seen = []

    @tt.compile
    def steps(x: tt.Tensor) -> Generator[tt.Tensor, Any, str]:
        try:
            got = yield x + 1
            seen.append(kind_of(x * 2))
            try:
                yield x * got
            except KeyError:
                yield x * 100
            return "over"
        finally:
            seen.append("closed")

    assert inspect.isgeneratorfunction(steps)
    made = steps(tt.ones(2))
    assert next(made).tolist() == [2, 2]
    assert made.send(3).tolist() == [3, 3]
    assert made.throw(KeyError()).tolist() == [100, 100]
    with pytest.raises(StopIteration, match="over"):
        next(made)
    assert seen == [LazyArray, "closed"]
    other = steps(tt.ones(1))
    next(other)
    other.close()
    assert seen[-1] == "closed"
    assert len(seen) == 3


def test_coroutines_and_asynchronous_generators() -> None:
    seen = []

    @tt.compile
    async def f(x: tt.Tensor) -> tt.Tensor:
        y = x + 1
        await asyncio.sleep(0)
        seen.append(kind_of(y * 2))
        return y

    @tt.compile
    async def g(x: tt.Tensor) -> AsyncGenerator[tt.Tensor, Any]:
        for i in range(3):
            await asyncio.sleep(0)
            yield x + i

    @tt.compile
    async def failing() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    async def main() -> list[float]:
        several = await asyncio.gather(*[f(tt.full((1,), i)) for i in range(3)])
        with pytest.raises(KeyError):
            await failing()
        return [y.item() for y in several] + [y.item() async for y in g(tt.ones(1))]

    assert inspect.iscoroutinefunction(f)
    assert inspect.isasyncgenfunction(g)
    assert asyncio.run(main()) == [1, 2, 3, 1, 2, 3]
    assert seen == [LazyArray] * 3


def test_transforms_of_compiled_functions_and_compiled_transforms() -> None:
    def cube(x: tt.Tensor) -> tt.Tensor:
        return (x**3).sum()

    compiled, x = tt.compile(cube), tt.tensor([1.0, 2.0])
    assert tt.func.grad(compiled)(x).tolist() == [3, 12]
    assert tt.compile(tt.func.grad(cube))(x).tolist() == [3, 12]
    assert tt.vmap(tt.compile(twice))(tt.ones(3, 2)).tolist() == [[2, 2]] * 3
    assert tt.compile(tt.vmap(twice))(tt.ones(3, 2)).tolist() == [[2, 2]] * 3
    assert tt.func.hessian(compiled)(x).tolist() == [[6, 0], [0, 12]]
    assert tt.func.jvp(compiled, (x,), (tt.ones(2),))[1].item() == 15


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"mode": "fastest"}, ValueError, "mode 'fastest' is not known"),
        ({"mode": "default", "options": {}}, ValueError, "either mode or options"),
        ({"options": {"max_autotun": True}}, ValueError, "did you mean 'max_autotune'"),
        ({"backend": "inductr"}, ValueError, "backend 'inductr' is not known"),
        ({"backend": lambda graph, inputs: graph}, NotImplementedError, "a backend that is a function"),
    ],
)
def test_arguments_are_checked(given: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        tt.compile(twice, **given)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="int cannot be called"):
        tt.compile(3)

    class Nothing:
        pass

    with pytest.raises(TypeError, match="Nothing has no __call__"):
        tt.compile(Nothing)


def test_options_of_pytorch_are_accepted() -> None:
    assert tt.compile(twice, options={"max-autotune": True, "triton.cudagraphs": False})(tt.ones(1)).item() == 2
