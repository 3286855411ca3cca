"""The benchmark command: `python -m bench host`, `train` or `ops`."""

from __future__ import annotations

import argparse
import os


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of tritensor; torch is a peer where it is installed.")
    parser.add_argument("what", choices=["host", "train", "ops"], help="host cost of tiny ops, training steps, or every op of the table")
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads (default 1: a busy neighbour slows several threads)")
    args = parser.parse_args()
    # BLAS reads this when numpy is imported, so it is set before anything else is.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import importlib

    importlib.import_module(f"bench.{args.what}").main()


if __name__ == "__main__":
    main()
