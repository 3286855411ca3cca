"""Runs one trial in a process of its own and says in one line of JSON how it went: `python -m tests.other_kernels.child NAME numbers|compiled FOLDER`."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import triton

import tritensor
from tests.other_kernels.trial import TRIALS, Run
from tritensor.cuda.runtime import active
from tritensor.ground.errors import LaunchError
from tritensor.tools.run_script import opened

ROOMS = (
    "tutorials", "liger", "attorch", "unsloth", "flag_gems", "mamba", "flash_attention", "lightllm", "flash_linear_attention", "bitsandbytes",
)  # fmt: skip
MOST_CONFIGS = 3  # of one kernel with the same types: an autotuner tries dozens
_OURS = (
    str(Path(tritensor.__file__).resolve().parent),
    str(Path(tritensor.__file__).resolve().parent.parent / "kernels"),
    str(Path(triton.__file__).parent),
)


def load() -> None:
    """Fill the table of trials."""
    for room in ROOMS:
        importlib.import_module(f"tests.other_kernels.trials.{room}")


def foreign(kernel: Any) -> bool:
    """Whether a kernel is neither this library's nor Triton's own."""
    return not os.path.realpath(kernel.fn.__code__.co_filename).startswith(_OURS)


class Watch:
    """The launches of kernels that are not ours, by the kernel's name, in the order of their first launch."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def over(self, runtime: Any) -> None:
        """Count what a runtime launches from now on."""
        launch = runtime.launch

        def counted(call: Any) -> None:
            if foreign(call.kernel):
                name = call.kernel.fn.__name__
                self.counts[name] = self.counts.get(name, 0) + 1
            launch(call)

        runtime.launch = counted


def compile_all(recorded: Any) -> tuple[int, int]:
    """Compile what was recorded of kernels that are not ours for sm_90, some configs of each; returns how many, of how many.

    A config that the kernel's own static_assert refuses is passed over, as a tuner does. Raises LaunchError for any other that does not compile, and
    where none of a kernel's configs does.
    """
    from tritensor.cuda.compiler.compile import compile

    done: dict[Any, int] = {}
    refused: dict[Any, LaunchError] = {}
    specs = [s for s in recorded if foreign(s.kernel)]
    for spec in specs:
        alike = (spec.kernel, re.sub(r"<(\w+)\[.*?\]>", r"<\1>", str([t for t in spec.types if t != "constexpr"])))  # tiles are a config's
        if done.setdefault(alike, 0) >= MOST_CONFIGS:
            continue
        try:
            compile(spec, 90)
        except LaunchError as error:
            if "CompileTimeAssertionFailure" not in str(error):
                raise
            refused[alike] = error
        else:
            done[alike] += 1
    for alike, count in done.items():
        if count == 0:
            raise refused[alike]
    return sum(done.values()), len(specs)


def run(name: str, numbers: bool, folder: Path) -> dict[str, Any]:
    """Run a trial here; what came of it."""
    found = TRIALS[name]
    runtime: Any
    if numbers:
        runtime = active.runtime()
    else:
        from tritensor.cuda.virtual.virtual_gpu import VirtualGPU

        runtime = VirtualGPU(90)
        active.use(runtime)
    watch = Watch()
    watch.over(runtime)
    at = folder / found.project.name
    sys.path.insert(0, str((at / found.project.path).resolve()))
    triton.testing.Mark.run = lambda *_, **__: None  # benchmarks measure nothing here
    start = time.perf_counter()
    said: dict[str, Any] = {"error": "", "compiled": [0, 0]}
    asked: list[Any] = []
    try:
        with opened() as asked:
            trial = Run(at, numbers)
            found.check(trial)
            if not watch.counts:
                raise LaunchError("none of the project's kernels was launched")
            if not trial.compared:
                raise LaunchError("nothing was compared")
            if not numbers:
                said["compiled"] = compile_all(runtime.launches)
    except Exception as error:
        said["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    said |= {"seconds": time.perf_counter() - start, "kernels": watch.counts, "missing": sorted({str(a) for a in asked})}
    return said


def main() -> int:
    name, mode, folder = sys.argv[1:]
    load()
    with contextlib.redirect_stdout(sys.stderr):
        said = run(name, mode == "numbers", Path(folder).resolve())
    print(json.dumps(said))
    return 1 if said["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
