"""The command `tritensor`: a list of subcommands, each imported when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]  # where the package stands: a checkout, or the folder of installed packages


class Command(NamedTuple):
    """A subcommand: the module whose `main(argv, parser)` runs it, what it is for, and two calls of it."""

    module: str
    caption: str
    examples: tuple[str, str]
    of_checkout: bool = False  # works on the repository's own files


COMMANDS = {
    "run": Command(
        "tritensor.tools.run_script",
        "run a PyTorch script unchanged: tritensor answers its `import torch`; what is missing is listed at the end, with file and line",
        ("run train.py --epochs 2", "run -m package.train"),
    ),
    "stand-in": Command(
        "tritensor.tools.stand_in.command",
        "make `import torch` tritensor in this environment, so that pip installs libraries of PyTorch without it; or remove that again",
        ("stand-in install", "stand-in status"),
    ),
    "launch": Command(
        "tritensor.tools.launch.command",
        "run a script as many ranks that talk by MPI; who fails first is told by rank, host and traceback",
        ("launch -n 4 train.py --lr 0.1", "launch -n 16 --hosts a,b --max-restarts 1 -m package.train"),
    ),
    "doctor": Command(
        "tritensor.tools.doctor",
        "is the GPU working: driver, devices, packages, caches, one kernel against numpy; exit code 0 when it is, 1 when not",
        ("doctor", "doctor --json"),
    ),
    "test": Command(
        "tritensor.testing.__main__",
        "ask ops by hand what is wrong with them, on the CPU and on device cuda (emulated where no GPU is)",
        ("test softmax 'conv*' --dtype float32", "test my_ops.py --sabotage"),
    ),
    "tune": Command(
        "tritensor.tools.tune",
        "time the configs of kernels on this GPU and keep the fastest; --dry-run compiles and ranks them without a GPU",
        ("tune --op softmax --budget 10", "tune --kernel my_kernels.py:add_kernel --dry-run"),
    ),
    "precompile": Command(
        "tritensor.tools.precompile",
        "compile kernels for GPUs that need not be here into a pack, so that a training run compiles nothing",
        ("precompile --arch sm_90 --script train.py --epochs 1", "precompile --arch sm_80,sm_90 --op 'conv*' my_ops.py"),
    ),
    "bench": Command(
        "bench", "time ops, training steps, imports, files, ranks and kernels", ("bench", "bench ops --op softmax --peer"), True
    ),
    "stubs": Command("tritensor.tools.stubs", "write the .pyi files that editors read", ("stubs", "stubs && git diff '*.pyi'"), True),
    "op-index": Command(
        "tritensor.tools.op_index", "write which file of kernels/ registers which ops", ("op-index", "op-index --check"), True
    ),
}


def listing() -> str:
    """A line for each subcommand."""
    lines = []
    for of_checkout, title in ((False, "commands:"), (True, "commands of a checkout of the repository:")):
        lines += ["", title, *(f"  {name:10}  {c.caption}" for name, c in COMMANDS.items() if c.of_checkout is of_checkout)]
    return "\n".join([*lines[1:], "", "tritensor COMMAND --help tells a command's options, with examples."])


def main(argv: Sequence[str] | None = None, form: str = "tritensor {}") -> int:
    """Run the command; returns its exit code: 0 done, 1 something failed, 2 the command line makes no sense.

    `form`: how the user wrote it, "python -m tritensor.{}" where Python itself was asked.
    """
    given = sys.argv[1:] if argv is None else list(argv)
    as_written = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser("tritensor", "%(prog)s [-h] [--version] COMMAND ...", epilog=listing(), formatter_class=as_written)
    top.add_argument("--version", action="version", version=f"tritensor {sys.modules['tritensor'].__version__}")
    top.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    if not given:
        top.print_help()
        return 2
    name = top.parse_args(given[:1]).command  # the first word alone: the others are the subcommand's, of whatever form
    command = COMMANDS[name]
    if command.of_checkout and not (CHECKOUT / "pyproject.toml").exists():
        print(f"tritensor {name}: works on a checkout of the repository; this tritensor is installed in {CHECKOUT}", file=sys.stderr)
        return 2
    if name == "bench":  # its own process, before anything of it is imported here
        _bench(given[1:])
    about, examples = f"{command.caption[0].upper()}{command.caption[1:]}.", "\n".join(f"  tritensor {e}" for e in command.examples)
    parser = argparse.ArgumentParser(form.format(name), description=about, formatter_class=as_written, epilog=f"examples:\n{examples}")
    try:
        return importlib.import_module(command.module).main(given[1:], parser)  # late: --help of one need not load what all of them do
    except KeyboardInterrupt:
        if name in ("run", "launch"):  # they tell of it as the script would
            raise
        kept = "; what is done so far is kept, the same command goes on from there" if name in ("tune", "precompile") else ""
        print(f"tritensor: interrupted{kept}", file=sys.stderr)
        return 130  # 128 + SIGINT, as shells have it


def _bench(argv: Sequence[str]) -> None:
    """Become `python -m bench`: it chooses the number of BLAS threads, which numpy reads when it is imported."""
    path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
    os.execve(sys.executable, [sys.executable, "-m", "bench", *argv], {**os.environ, "PYTHONPATH": path})


if __name__ == "__main__":
    sys.exit(main())
