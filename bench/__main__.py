"""The benchmark command: `python -m bench host`, `train`, `ops`, `optim`, `imports`, `static`, `gpu` or `table`."""

from __future__ import annotations

import argparse
import os
import sys

OWN_ARGUMENTS = {"host", "train", "ops", "optim", "static", "gpu", "table"}  # these read the rest of the command line themselves


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of tritensor; torch is a peer where it is installed.")
    parser.add_argument(
        "what",
        choices=["host", "train", "ops", "optim", "imports", "static", "gpu", "table"],
        help="host cost of tiny ops, training steps, every op of the table on the CPU (--peer: every function beside torch), a step of every optimizer, what an import takes, what compiled kernels use, every op on the GPU, "
        "or the README's table of a GPU's report (optim, static, gpu and table --help say more)",
    )
    threads = argparse.ArgumentParser(add_help=False)
    for p in (parser, threads):
        p.add_argument("--threads", type=int, default=1, help="BLAS threads (default 1: a busy neighbour slows several threads)")
    own = None
    if len(sys.argv) > 1 and sys.argv[1] in OWN_ARGUMENTS:
        args, own = threads.parse_known_args(sys.argv[2:])
        args.what = sys.argv[1]
    else:
        args = parser.parse_args()
    # BLAS reads this when numpy is imported, so it is set before anything else is.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import importlib

    module = importlib.import_module(f"bench.{args.what}")
    sys.exit(module.main() if own is None else module.main(own))


if __name__ == "__main__":
    main()
