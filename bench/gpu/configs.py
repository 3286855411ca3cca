"""Configs that a call's kernels run with: every launch of it, with warps, stages and constants, as the recorder of replays sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.ground.thread_state import here
from tritensor.ops import replay
from tritensor.ops.replay.recorder import Recorder


def configs_of(run: Callable[[], object]) -> list[dict[str, Any]]:
    """What `run()` launches on device cuda, in order: {"kernel", "num_warps", "num_stages", "constants": {name: value}, "launches": how often}.

    It is run once, launches and all. [] where it launches nothing: on the CPU, and for views. Calls that were replayed before are learnt anew.
    """
    replay.forget()  # a known call runs no Python that could be listened to
    recorder, before = Recorder(()), here.recorder
    here.recorder = recorder  # corners that find one run as they are written, and launch() tells it what it is given
    try:
        run()
    finally:
        here.recorder = before
    found: list[dict[str, Any]] = []
    for call in recorder.calls:
        config = _config(call)
        same = next((f for f in found if {**f, "launches": 0} == {**config, "launches": 0}), None)
        if same is None:
            found.append(config)
        else:
            same["launches"] += 1
    return found


def _config(call: LaunchCall) -> dict[str, Any]:
    constants = {name: _plain(value) for name, value in {**call.named, **dict(call.options)}.items()}
    return {
        "kernel": call.kernel.__name__,
        "num_warps": call.num_warps,
        "num_stages": call.num_stages,
        "constants": constants,
        "launches": 1,
    }


def _plain(value: Any) -> Any:
    """A constant as JSON has it: numbers, words and lists of them; functions and types by name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return getattr(value, "__name__", None) or str(value)


def in_words(configs: list[dict[str, Any]]) -> str:
    """Configs in a line: "_softmax_kernel 8 warps, BLOCK 4096"; whole numbers above one alone, the rest stands in the report."""
    found = []
    for config in configs:
        sizes = [f"{k} {v}" for k, v in config["constants"].items() if isinstance(v, int) and not isinstance(v, bool) and v > 1]
        often = f" x {config['launches']}" if config["launches"] > 1 else ""
        found.append(", ".join([f"{config['kernel']}{often} {config['num_warps']} warps", *sizes]))
    return "; ".join(found)
