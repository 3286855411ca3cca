"""torch.compile beside ours: names, what modules hand on, what is refused, what explain counts."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest

import tritensor as tt

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
BOTH = {"torch": torch, "tritensor": tt}
# What a compiler has that traces bytecode, or keeps compiled functions in files, and this one not.
NOT_HERE = {"config", "load_cache_artifacts", "load_compiled_function", "save_cache_artifacts"}


def test_names_of_torch_compiler() -> None:
    assert {n for n in torch.compiler.__all__ if not hasattr(tt.compiler, n)} == NOT_HERE


@pytest.mark.parametrize("name", [n for n in torch.compiler.__all__ if n not in NOT_HERE | {"compile"}])
def test_arguments_of_torch_compiler(name: str) -> None:
    ours, theirs = (list(inspect.signature(getattr(m.compiler, name)).parameters) for m in (tt, torch))
    assert ours[: len(theirs)] == theirs


def test_arguments_of_compile() -> None:
    ours, theirs = (inspect.signature(m.compile).parameters for m in (tt, torch))
    assert {n: (p.kind, p.default) for n, p in ours.items()} == {n: (p.kind, p.default) for n, p in theirs.items()}


def told(lib: Any) -> list[Any]:
    """What there is to see of a compiled module."""
    model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3))
    compiled = lib.compile(model, backend="eager")
    found: list[Any] = [
        type(compiled).__name__, isinstance(compiled, lib._dynamo.eval_frame.OptimizedModule), compiled._orig_mod is model, list(compiled.state_dict()),
        [n for n, _ in compiled.named_parameters()], [n for n, _ in compiled.named_modules()], [n for n, _ in compiled.named_children()], len(compiled),
        repr(compiled).splitlines()[:3], compiled.training,
    ]  # fmt: skip
    compiled.more = 3
    compiled.eval()
    found += [model.more, model.training, model[1].training, compiled.training, "more" in dir(compiled)]
    del compiled.more
    found += [hasattr(model, "more"), hasattr(compiled, "0"), hasattr(compiled, "missing")]
    seen: list[str] = []
    compiled.register_forward_hook(lambda m, a, y: seen.append(type(m).__name__))
    model.register_forward_hook(lambda m, a, y: seen.append(type(m).__name__))
    compiled(lib.ones(4, 2))
    found += [seen, len(compiled._forward_hooks), len(model._forward_hooks)]
    other = copy.deepcopy(compiled)
    found += [type(other).__name__, other._orig_mod is model, compiled.double() is compiled]
    try:
        compiled[0]
    except TypeError as error:
        found.append(str(error))
    model.compile(backend="eager")
    found += [callable(model._compiled_call_impl), copy.deepcopy(model)._compiled_call_impl, list(model.state_dict())]
    return found


def test_modules() -> None:
    ours, theirs = told(tt), told(torch)
    assert ours == theirs


@pytest.mark.parametrize(
    "given",
    [{"mode": "fastest"}, {"mode": "default", "options": {}}, {"options": {"max_autotun": True}}, {"backend": "nothing"}],
    ids=str,
)
def test_what_is_refused(given: dict[str, Any]) -> None:
    for lib in BOTH.values():
        with pytest.raises(RuntimeError):
            lib.compile(lambda x: x, **given)


@pytest.mark.parametrize(
    "given", [{"backend": "aot_eager"}, {"backend": "inductor", "options": {"max-autotune": True}}, {"mode": "reduce-overhead"}], ids=str
)
def test_what_is_taken(given: dict[str, Any]) -> None:
    for lib in BOTH.values():
        assert lib.compile(lambda x: x, **given).__name__ == "<lambda>"
        assert callable(lib.compile(**given))


def test_functions() -> None:
    for lib in BOTH.values():

        def f(x: Any) -> Any:
            """Said of it."""
            return x + 1

        compiled = lib.compile(f, backend="eager")
        assert (compiled.__name__, compiled.__doc__, compiled.__wrapped__, compiled._torchdynamo_orig_callable) == (
            "f",
            "Said of it.",
            f,
            f,
        )
        assert lib.compile(f, disable=True) is f


def test_what_explain_counts() -> None:
    for lib in BOTH.values():

        def f(x: Any) -> Any:
            y = x * 2
            y.sum().item()
            return y + 1

        found = lib._dynamo.explain(f)(lib.ones(2))
        assert (found.graph_count, found.graph_break_count, len(found.break_reasons), len(found.ops_per_graph)) == (2, 1, 1, 2)
        assert f"line {f.__code__.co_firstlineno + 2}" in str(found.break_reasons[0].user_stack[0]) or str(
            found.break_reasons[0].user_stack[0]
        ).endswith(f":{f.__code__.co_firstlineno + 2}")


def test_options_are_those_of_pytorch() -> None:
    import torch._inductor.config as config

    from tritensor.compilation.compile import _option_names

    theirs = {n for n in config.get_config_copy() if not n.startswith("_") and n != "TYPE_CHECKING"}
    assert set(_option_names()) == theirs | {"guard_filter_fn", "use_aoti"}
