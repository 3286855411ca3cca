"""Triton's hooks around launches: what its profiler hears of kernel[grid] on our tensors."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl

import tritensor as tt
from tests.stub.child import on_stub


def work(grid: tuple[int, ...], kernel: Any, args: dict[str, Any]) -> dict[str, Any]:
    """What the kernel says of a launch."""
    return {
        "name": f"{kernel.name}_{args['n']}",
        "bytes": 2 * args["x"].numel() * args["x"].element_size(),
        "programs": grid,
        "block": args["BLOCK"],
    }


@triton.jit(launch_metadata=work)
def doubled(x, y, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0) * 2, mask=i < n)


def heard() -> list[tuple[str, Any]]:
    """What hooks hear of a launch; of a second one, after they were taken away, they hear nothing."""
    events: list[tuple[str, Any]] = []

    def entered(about: Any) -> None:
        events.append(("enter", about.get()))

    def left(about: Any) -> None:
        events.append(("leave", about.get()["name"]))

    hooks = triton.knobs.runtime
    hooks.launch_enter_hook.add(entered)
    hooks.launch_exit_hook.add(left)
    x = tt.ones(37, device="cuda")
    y = tt.empty_like(x)
    try:
        doubled[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, 37)
    finally:
        hooks.launch_enter_hook.remove(entered)
        hooks.launch_exit_hook.remove(left)
    doubled[(3,)](x, y, 37)  # nobody listens
    return events


def check(events: list[tuple[str, Any]]) -> None:
    (first, about), (second, name) = events
    assert (first, second) == ("enter", "leave")
    assert name == about["name"] == "doubled_37"
    assert about["bytes"] == 2 * 37 * 4
    assert about["programs"] == (3, 1, 1)
    assert about["block"] == 16
    assert isinstance(about["stream"], int)


def test_emulated() -> None:
    check(heard())


@on_stub()
def test_on_the_stub() -> None:
    check(heard())


def test_a_hook_that_raises_keeps_the_kernel_from_running() -> None:
    def refuses(about: Any) -> None:
        raise RuntimeError("not now")

    x, y = tt.ones(16, device="cuda"), tt.zeros(16, device="cuda")
    triton.knobs.runtime.launch_enter_hook.add(refuses)
    try:
        with pytest.raises(RuntimeError, match="not now"):
            doubled[(1,)](x, y, 16)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(refuses)
    assert not y.any()
