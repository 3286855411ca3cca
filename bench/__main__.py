"""The benchmark command, `python -m bench NAME`: COMMANDS lists the names."""

from __future__ import annotations

import argparse
import os
import sys

# What each runs, and what it is for. All but imports read the rest of the command line themselves.
COMMANDS = {
    "host": ("bench.cpu.host", "host cost of tiny ops"),
    "small": ("bench.small.command", "programs of many small ops on the CPU, and their actions one by one (--peer: beside torch)"),
    "compile": (
        "bench.compile.command",
        "formulas and cells written by hand, lazily, beside eager (--peer: torch, torch.compile, jax.jit)",
    ),
    "train": ("bench.cpu.train", "training steps"),
    "ops": ("bench.cpu.ops", "every op of the table on the CPU (--peer: every function beside torch)"),
    "optim": ("bench.cpu.optim", "a step of every optimizer"),
    "tensorboard": ("bench.cpu.tensorboard", "what a scalar costs a program that logs it"),
    "loader": ("bench.cpu.loader", "DataLoader workers: waiting datasets, large batches, start-up"),
    "profiler": ("bench.cpu.profiler", "what the profiler costs a training step"),
    "imports": ("bench.cpu.imports", "what an import takes"),
    "checkpoint": ("bench.cpu.checkpoint", "a checkpoint of 1 GB saved and loaded in every format"),
    "distributed": (
        "bench.distributed.command",
        "all_reduce and data-parallel steps over MPI beside torch on gloo, and a model of 1,024 ranks",
    ),
    "static": ("bench.static.command", "what compiled kernels use"),
    "gpu": ("bench.gpu.command", "every op on the GPU, beside torch and the roofline"),
    "compare": ("bench.reports.compare", "what became slower between two reports"),
    "table": ("bench.reports.readme_table", "the README's table, from a GPU's reports"),
    "readme": ("bench.reports.readme_figures", "the README's other figures, all of one run"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Benchmarks of tritensor; torch is a peer where it is installed.",
        epilog="; ".join(f"{name}: {what}" for name, (_, what) in COMMANDS.items()) + ". Each but imports says more with --help. "
        "python -m pytest bench --benchmark-only times the ops with pytest-benchmark",
    )  # fmt: skip
    parser.add_argument("what", choices=list(COMMANDS))
    threads = argparse.ArgumentParser(add_help=False)
    for p in (parser, threads):
        p.add_argument("--threads", type=int, default=1, help="BLAS threads (default 1: a busy neighbour slows several threads)")
    own = None
    if len(sys.argv) > 1 and sys.argv[1] in COMMANDS and sys.argv[1] != "imports":
        args, own = threads.parse_known_args(sys.argv[2:])
        args.what = sys.argv[1]
    else:
        args = parser.parse_args()
    # BLAS reads this when numpy is imported, so it is set before anything else is.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import importlib

    module = importlib.import_module(COMMANDS[args.what][0])
    sys.exit(module.main() if own is None else module.main(own))


if __name__ == "__main__":
    main()
