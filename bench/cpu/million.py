"""Every public function on a million elements on the CPU, beside torch where it is installed: `python -m bench ops --peer`.

An entry is a call in both libraries' spelling: T is the library, F its functional. The names in it: x, y (positive) and u (between 0 and 1) are
1000 x 1000, v and w have a million elements, c is 256 x 256 and s symmetric positive definite of that size, b is 64 x 128 x 128, q is 16 x 16 x 64 x 64,
a is 1000 x 1000 x 1 and small (all float32); d is x in float64, h in float16, z complex; i, j (positive) hold integers below 100, n positions
below 1000, k truths, each 1000 x 1000; r is a permutation of a million.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.cpu.million_calls import CALLS
from bench.cpu.timing import Paired, least, torch_or_none

SIDE = 1000
WORSE = 2.0  # ratios above it are listed by name


def operands(T: Any) -> dict[str, Any]:
    """What the calls are about, the same numbers in either library."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((SIDE, SIDE)).astype(np.float32)
    c = rng.standard_normal((256, 256)).astype(np.float32)
    made = {
        "x": x, "y": np.abs(rng.standard_normal((SIDE, SIDE)).astype(np.float32)) + 0.1, "u": rng.random((SIDE, SIDE), np.float32) * 0.98 + 0.01,
        "v": x.reshape(-1), "w": rng.standard_normal(SIDE * SIDE).astype(np.float32), "c": c, "s": c @ c.T / 256 + np.eye(256, dtype=np.float32),
        "b": rng.standard_normal((64, 128, 128)).astype(np.float32), "q": rng.standard_normal((16, 16, 64, 64)).astype(np.float32),
        "d": x.astype(np.float64), "h": x.astype(np.float16), "z": (x + 1j * rng.standard_normal((SIDE, SIDE))).astype(np.complex64),
        "i": rng.integers(-100, 100, (SIDE, SIDE)), "j": rng.integers(1, 100, (SIDE, SIDE)), "n": rng.integers(0, SIDE, (SIDE, SIDE)),
        "k": x > 0, "r": rng.permutation(SIDE * SIDE),
    }  # fmt: skip
    return {"T": T, "F": T.nn.functional, "math": math} | {name: T.from_numpy(value.copy()) for name, value in made.items()}


def compiled(T: Any, expression: str) -> Callable[[], Any]:
    """A call without arguments that evaluates an expression in a library."""
    call: Callable[[], Any] = eval(f"lambda: {expression}", operands_of(T))
    return call


_made: dict[int, dict[str, Any]] = {}


def operands_of(T: Any) -> dict[str, Any]:
    """The same, made once for a library."""
    if id(T) not in _made:
        _made[id(T)] = operands(T)
    return _made[id(T)]


def measured(expression: str, tt: Any, torch: Any, seconds: float) -> Paired:
    """Ours and torch's CPU time of one call on one thread, gradients off: the least of many short rounds in turn."""
    ours = compiled(tt, expression)
    peer = compiled(torch, expression) if torch is not None else None
    with tt.no_grad():
        return least(ours, peer, seconds=seconds)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench ops", description=__doc__)
    parser.add_argument("--peer", action="store_true", help="this table (without it: the op table's own sizes)")
    parser.add_argument("--only", nargs="+", default=[], help="calls that contain one of these")
    parser.add_argument("--seconds", type=float, default=0.5, help="for one call of both")
    parser.add_argument("--write", type=Path, help="a file for the ratios, as JSON")
    args = parser.parse_args(arguments)
    import tritensor as tt

    torch = torch_or_none()
    if torch is None:
        sys.exit("ops --peer: torch is not installed here; install it, or run `python -m bench ops` for our own times")
    torch.set_grad_enabled(False)  # type: ignore[attr-defined]
    found: dict[str, float] = {}
    failed: list[str] = []
    for expression in CALLS:
        if args.only and not any(part in expression for part in args.only):
            continue
        try:
            result = measured(expression, tt, torch, args.seconds)
        except Exception as error:  # one call that fails must not cost the rest of a long run
            failed.append(f"{expression}: {type(error).__name__}: {error}")
            print(f"{expression:<60.60}FAILED {type(error).__name__}: {str(error)[:80]}", flush=True)
            continue
        assert result.peer is not None
        assert result.ratio is not None
        found[expression] = result.ratio
        print(f"{expression:<60.60}{result.ours * 1e3:>10.3f} ms{result.peer * 1e3:>10.3f} ms{result.ratio:>8.2f} x torch", flush=True)
    if found:
        mean = math.exp(sum(map(math.log, found.values())) / len(found))
        slow = {e: r for e, r in sorted(found.items(), key=lambda item: -item[1]) if r > WORSE}
        print(f"{len(found)} calls, geometric mean {mean:.2f}; above {WORSE:g}: {len(slow)}")
        for e, r in slow.items():
            print(f"  {r:.2f}  {e}")
    if args.write is not None:
        args.write.write_text(json.dumps(found, indent=1) + "\n")
    if failed:
        sys.exit(f"{len(failed)} failed")
