"""The command `tritensor launch`: reads the command line, finds mpiexec and runs the ranks."""

import argparse
from collections.abc import Sequence

from tritensor.tools.launch.mpiexec import find
from tritensor.tools.launch.options import parse
from tritensor.tools.launch.supervisor import run


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Run what the command line says and return the exit code: 0, that of the first failure, or 128 + the signal that stopped it."""
    options = parse(argv, parser)
    try:
        mpiexec = find()
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))
    return run(options, mpiexec)
