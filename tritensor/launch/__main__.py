"""The command `python -m tritensor.launch`: reads the command line, finds mpiexec and runs the ranks."""

import sys

from tritensor.launch.mpiexec import find
from tritensor.launch.options import parse, stop
from tritensor.launch.supervisor import run


def main(arguments: list[str]) -> int:
    """Run what the command line says and return the exit code: 0, that of the first failure, or 128 + the signal that stopped it."""
    options = parse(arguments)
    try:
        mpiexec = find()
    except (FileNotFoundError, ValueError) as error:
        stop(str(error))
    return run(options, mpiexec)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
