"""Ask ops by hand: `TRITON_INTERPRET=1 python -m tritensor.testing.questions softmax sum --dtype float32 --device emulated` prints what is wrong."""

from __future__ import annotations

import argparse
import sys
import time

import tritensor.kernels  # noqa: F401  (fills the table)
from tritensor.device import device
from tritensor.table import registry
from tritensor.testing.questions.ask import ask
from tritensor.testing.questions.cases import cases, types

PLACES = {"cpu": "cpu", "emulated": "cuda:0", "gpu": "cuda:0"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tritensor.testing.questions", description=__doc__)
    parser.add_argument("ops", nargs="*", help="names of ops; all when none is given")
    parser.add_argument("--dtype", action="append", help="types to ask in; all that the op claims when none is given")
    parser.add_argument("--device", action="append", choices=list(PLACES), help="cpu and emulated when none is given")
    parser.add_argument("--show", type=int, default=6, help="findings to print for one op, type and device")
    given = parser.parse_args()
    total = 0
    for name in given.ops or list(registry):
        op = registry[name]
        for where in given.device or ["cpu", "emulated"]:
            for dtype in given.dtype or types(op):
                start = time.perf_counter()
                found = [line for case in cases(op, dtype, device(PLACES[where])) for line in ask(case)]
                total += len(found)
                print(f"{name}/{dtype}/{where}: {len(found) or 'no'} findings, {time.perf_counter() - start:.1f} s", flush=True)
                for line in found[: given.show]:
                    print("   ", line)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
