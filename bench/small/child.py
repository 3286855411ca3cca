"""A process that is timed: a line of JSON says what to build or how often to call it, a line answers processor seconds.

Run as a file, by Python for torch, numpy and jax, and by `python -m tritensor.run` for ours; it imports nothing of this repository, so that
what it times is the library that its PYTHONPATH names.
"""

from __future__ import annotations

import functools
import json
import os
import random
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Loop = Callable[[int], object]


def of_torch() -> dict[str, Any]:
    """The names of statements in torch: ours and torch's."""
    import torch

    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))

    return {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "distributions": torch.distributions, "np": np, "drawn": drawn,
        "learnt": lambda *shape: drawn(*shape).requires_grad_(), "scalar": lambda x: torch.tensor(x), "whole": torch.arange,
    }  # fmt: skip


def of_numpy() -> dict[str, Any]:
    """The names of the floor's statements."""
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    return {"np": np, "rng": rng, "drawn": drawn, "learnt": drawn, "scalar": lambda x: np.array(x, "f4"), "whole": np.arange}


def of_jax() -> dict[str, Any]:
    """The names of statements in jax.numpy; `ready` waits for a result."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return jnp.asarray(rng.standard_normal(shape).astype(np.float32))

    return {
        "jax": jax, "jnp": jnp, "np": np, "key": jax.random.key(0), "ready": jax.block_until_ready, "drawn": drawn, "learnt": drawn, "scalar": jnp.array,
        "whole": jnp.arange,
    }  # fmt: skip


KINDS = {"torch": functools.cache(of_torch), "numpy": functools.cache(of_numpy), "jax": functools.cache(of_jax)}


def statement(kind: str, setup: str, body: str) -> Loop:
    """A loop over the body, in which all that the setup leaves is local, as in a function of a program."""
    known = dict(KINDS[kind]())
    exec(setup, known)
    known.pop("__builtins__", None)
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    exec(f"def loop(calls, {', '.join(f'{k}={k}' for k in known)}):\n    for _ in range(calls):\n{lines}", known)
    return known["loop"]


def workload(kind: str, file: str, **given: str) -> Loop:
    """The steps of a file's `build()`, which takes what is given besides."""
    step = runpy.run_path(file)["build"](**given)

    def loop(calls: int) -> None:
        for _ in range(calls):
            step()

    return loop


def program(kind: str, file: str) -> Loop:
    """Whole runs of a program, each from the same seeds."""
    import torch

    sys.argv = [file]

    def loop(calls: int) -> None:
        for _ in range(calls):
            torch.manual_seed(0)
            random.seed(0)
            np.random.seed(0)
            runpy.run_path(file, run_name="__main__")

    return loop


HOW: dict[str, Callable[..., Loop]] = {"statement": statement, "workload": workload, "program": program}


def answers(kind: str, questions: Iterator[str]) -> Iterator[dict[str, Any]]:
    """One for each question: nothing once a loop is built, the seconds of one call and the process's, or the error's first line. `wall` is by the clock."""
    loops: dict[str, Loop] = {}
    for text in questions:
        asked = json.loads(text)
        try:
            if "build" in asked:
                label, how = asked.pop("build"), asked.pop("how")
                loops[label] = HOW[how](kind, **asked)
                yield {}
            else:
                loop, calls, begun, start = loops[asked["run"]], asked["calls"], time.perf_counter(), time.process_time()
                loop(calls)
                end = time.process_time()
                yield {"seconds": (end - start) / calls, "process": end, "wall": (time.perf_counter() - begun) / calls}
        except (Exception, SystemExit) as error:
            yield {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


def main(kind: str) -> None:
    """Serve; what is run writes into the void."""
    del sys.path[0]  # this folder: nothing in it is to be imported
    with os.fdopen(os.dup(1), "w") as out:
        void = os.open(os.devnull, os.O_WRONLY)
        os.dup2(void, 1)
        for answer in answers(kind, iter(sys.stdin.readline, "")):
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
