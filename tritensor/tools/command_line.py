"""The command `tritensor`: precompile kernels, tune them, ask whether the GPU works."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Sequence


def version() -> str:
    """The installed version, or that of the source tree this runs from."""
    found = getattr(sys.modules.get("tritensor"), "__version__", None)
    return found or importlib.metadata.version("tritensor")


def parser() -> argparse.ArgumentParser:
    """The command's options; each subcommand's are beside what it does."""
    from tritensor.tools import doctor, precompile, tune

    top = argparse.ArgumentParser(prog="tritensor", description="tritensor on the command line.")
    top.add_argument("--version", action="version", version=f"tritensor {version()}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "compile kernels for GPUs that need not be here into a pack, so that a training run compiles nothing"
    precompile.add_arguments(commands.add_parser("precompile", help=text, description=text))
    tune.add_arguments(commands.add_parser("tune", help=tune.CAPTION, description=tune.CAPTION))
    doctor.add_arguments(commands.add_parser("doctor", help=doctor.CAPTION, description=doctor.CAPTION))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code: 0 done, 1 something failed, 2 the command line makes no sense."""
    from tritensor.tools import doctor, precompile, tune

    args = parser().parse_args(argv)
    try:
        if args.command == "precompile":
            return precompile.main(args, version())
        if args.command == "tune":
            return tune.main(args)
        return doctor.report(args)
    except KeyboardInterrupt:
        print("tritensor: interrupted; what is done so far is kept, the same command goes on from there", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
