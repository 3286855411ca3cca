"""The ops that a bench command's `--op` names; a name that gives none is told in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tritensor.ground.errors import PluginError
from tritensor.ops.table import Op
from tritensor.ops.table.op_selection import UnknownOpError, select_ops


def ops_asked(parser: argparse.ArgumentParser, asked: Sequence[str]) -> list[Op]:
    """The ops of `--op`, all where it is empty. Ends the process with exit code 2 and a line for a name, pattern or file that gives none."""
    try:
        return select_ops(asked)
    except (UnknownOpError, PluginError) as error:
        print(f"{parser.prog.removeprefix('python -m ')}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
