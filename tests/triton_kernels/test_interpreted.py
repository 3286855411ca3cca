"""Interpreted kernels answer what programs ask of compiled ones, and so Triton's tuner and launchers of other projects find them."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

import tritensor as tt


@triton.jit(do_not_specialize=["n"])
def kernel(x, n, BLOCK: tl.constexpr = 8):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, n + i.to(tl.float32).sum(), mask=i < n)


@triton.jit
def other(x, n, BLOCK: tl.constexpr = 8):
    tl.store(x, n)


@triton.jit
def low(dtype):
    kind = dtype.value
    if kind.is_floating():
        return float("-inf")
    return -1


@triton.jit
def lowest(x):
    tl.store(x, low(x.type.element_ty))


def test_a_kernel_is_known_by_class_parameters_and_source() -> None:
    assert type(kernel) is InterpretedFunction
    assert isinstance(kernel, InterpretedFunction)
    assert isinstance(kernel, JITFunction)
    assert [(p.name, p.num, p.is_constexpr, p.do_not_specialize) for p in kernel.params] == [
        ("x", 0, False, False),
        ("n", 1, False, True),
        ("BLOCK", 2, True, False),
    ]
    assert list(kernel.signature.parameters) == kernel.arg_names == ["x", "n", "BLOCK"]
    assert kernel.cache_key.isalnum()
    assert kernel.cache_key != other.cache_key
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        kernel.nothing_of_the_kind  # noqa: B018


def test_it_is_still_run_by_the_interpreter() -> None:
    x = tt.zeros(8, device="cuda")
    kernel[(1,)](x, 5)
    assert x.tolist() == [33.0] * 5 + [0.0] * 3


def test_a_tuner_that_keeps_its_choice_finds_the_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    chosen: list[Any] = []
    heard = hasattr(triton.knobs.autotuning, "listener")  # Triton 3.6 has none
    monkeypatch.setattr(
        triton.knobs.autotuning, "listener", lambda **said: chosen.append((said["fn"], said["best_config"].kwargs)), raising=False
    )
    configs = [triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})]
    tuned = triton.autotune(configs, key=["n"], cache_results=True)(kernel)
    x = tt.zeros(16, device="cuda")
    tuned[(1,)](x, 3)
    assert x.tolist() == [31.0] * 3 + [0.0] * 13
    assert tuned.best_config.kwargs == {"BLOCK": 8}
    assert chosen == [(kernel, {"BLOCK": 8})] * heard


def test_a_config_that_stands_in_the_list_twice_is_taken() -> None:
    @triton.jit
    def even(x, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK < 64)
        tl.store(x, BLOCK)

    configs = [triton.Config({"BLOCK": b}) for b in (128, 64, 32, 16, 32)]
    x = tt.zeros(1, device="cuda")
    tuned = triton.autotune(configs, key=[])(even)
    tuned[(1,)](x)
    assert x.item() == 32


def test_the_type_that_a_kernel_hands_on_has_a_value() -> None:
    """Compiled it is a constexpr, and public kernels take the type out of it."""
    x = tt.zeros(1, device="cuda")
    lowest[(1,)](x)
    assert x.item() == float("-inf")
