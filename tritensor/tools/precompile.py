"""The command `tritensor precompile`: runs the op table or a script where no GPU is, and compiles every kernel it launches into a pack."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tritensor.cuda.compiler import cubin_cache, precompile
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.virtual_gpu import VirtualGPU
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, LaunchError, PluginError, RegistrationError
from tritensor.ground.thread_state import run_waiting
from tritensor.ops.table import Op, op_selection
from tritensor.tools.dry_run import run_ops, run_script
from tritensor.utils.progress import Bar

TYPES = ("float32", "bfloat16")


class Usage(Exception):
    """What the command line asks for cannot be had; the message says why."""


# One process per architecture: kernels choose their shapes by it, and what a call recorded stays in the process
class _Note(NamedTuple):
    """What the process of an architecture says: "total" (how many kernels), "done" (a Done), "failed" (a text), "output" (the script's)."""

    kind: str
    value: Any


def _child(arch: int, record: Callable[[], list[str]], quiet: bool, processes: int, parents: Connection, notes: Connection) -> None:
    parents.close()  # inherited: with it open here, this process would not see that the parent is gone
    recorder = VirtualGPU(arch)
    active.use(recorder)
    with _silence(quiet) as output:
        failures = record()
        said = output() if failures else ""
    for text in failures:
        notes.send(_Note("failed", text))
    notes.send(_Note("output", said))
    run_waiting()  # in a program that is lazy
    specs: list[Specialization] = list(recorder.launches)
    notes.send(_Note("total", len(specs)))
    for _, done in precompile.compile_all(specs, arch, processes):
        notes.send(_Note("done", done))
    notes.close()


@contextmanager
def _silence(on: bool) -> Iterator[Callable[[], str]]:
    """Within this, what the process prints goes to a file; the function given returns the last lines of it."""
    if not on:
        yield lambda: ""
        return
    with tempfile.TemporaryFile() as file, open(os.dup(file.fileno()), "w", buffering=1, errors="replace") as stream:
        _flush()
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)  # what programs that it starts print, and libraries
        os.dup2(file.fileno(), 2)

        def tail() -> str:
            _flush()
            file.seek(0)
            return "\n".join(file.read().decode(errors="replace").splitlines()[-20:])  # an error stands at the end

        try:
            with redirect_stdout(stream), redirect_stderr(stream):
                yield tail
        finally:
            for fd, old in zip((1, 2), kept, strict=True):
                os.dup2(old, fd)
                os.close(old)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _compile_arch(arch: int, record: Callable[[], list[str]], quiet: bool, processes: int) -> tuple[list[Any], list[str]]:
    """The rows and the failures of one architecture."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)  # fork: `record` holds ops and closures, which nothing pickles
    child = multiprocessing.get_context("fork").Process(target=_child, args=(arch, record, quiet, processes, here, there))
    child.start()
    there.close()  # so that recv ends where the child does, also where it is killed
    name = f"sm_{arch}"
    bar = Bar(f"{name}: recording", "kernels")
    rows, failures = [], []
    try:
        while True:
            try:
                note = here.recv()
            except EOFError:
                break
            if note.kind == "total":
                bar.begin(name, note.value)
            elif note.kind == "done":
                bar.step()
                if note.value.row is not None:
                    rows.append(note.value.row)
                else:
                    failures.append(note.value.failure)
            elif note.kind == "failed":
                failures.append(note.value)
            elif note.value:
                failures[-1] += "\nit had printed:\n" + note.value
        child.join()
    finally:
        bar.close()
        if child.is_alive():
            child.terminate()
    if child.exitcode:
        failures.append(f"sm_{arch}: the recording process died with exit code {child.exitcode}")
    return rows, failures


# The command
def _add_arguments(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(f"sm_{a} {gpus}" for a, gpus in precompile.ARCHS.items())
    parser.add_argument("--arch", required=True, metavar="sm_80,sm_90", help=f"GPUs to compile for: {known}")
    op_selection.add_option(parser, help=f"{op_selection.HELP}; called on their samples and timed sizes")
    parser.add_argument("--dtypes", metavar="float32,...", default=",".join(TYPES), help="types to call ops in (default: %(default)s)")
    parser.add_argument("--steps", type=int, metavar="N", help="stop the script after N optimizer steps (default: run to its end)")
    parser.add_argument(
        "--out", type=Path, metavar="PACK", help="file to write or to add to (default: in the cache's packs, found by itself)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes that compile at a time (default: one per core)")
    parser.add_argument("--verbose", action="store_true", help="show what the script prints")
    parser.add_argument(
        "--script", nargs=argparse.REMAINDER, metavar=("FILE", "ARG"),
        help="compile what this program launches, given these arguments; comes last. It sees a GPU whose memory reads as zeros",
    )  # fmt: skip


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Compile as asked, write the pack, say what is in it; 0, 1 if something could not be compiled, 2 if nothing could be begun."""
    start = time.perf_counter()
    _add_arguments(parser)
    args = parser.parse_args(argv)
    try:
        archs, record, name = _read_request(args)
        out = args.out or _default_out(name)
        there = precompile.check_writable(out)  # now and not after an hour of compiling
    except (Usage, LaunchError, DTypeError, PluginError, RegistrationError, ValueError) as error:
        print(f"tritensor precompile: {error}", file=sys.stderr)
        return 2
    processes = args.jobs or len(os.sched_getaffinity(0))
    rows: dict[bytes, Any] = {}
    failures: list[str] = []
    for arch in archs:
        found, bad = _compile_arch(arch, record, bool(args.script) and not args.verbose, processes)
        rows.update({r[0]: r for r in found})  # by hash, of which the architecture is a part
        failures += bad
    if rows:
        try:
            size = precompile.save(out, rows, archs, there, sys.modules["tritensor"].__version__)
        except OSError as error:
            print(f"tritensor precompile: {out}: cannot be written: {error.strerror or error}", file=sys.stderr)
            return 1
        added = f", added to the {there.count} that were there" if there is not None else ""
        print(f"{out}: {len(rows)} kernels{added}, {size / 1e6:.1f} MB, {time.perf_counter() - start:.1f} s")
        if args.out is not None:
            print(f"use it: TRITENSOR_PACK={out}, or tritensor.cuda.open_pack({str(out)!r}), or put it into {_packs()}")
    elif not failures:
        failures.append("nothing was launched on device cuda: does the program put its tensors there?")
    if failures:
        print(f"\n{len(failures)} failed:", file=sys.stderr)
        for text in failures:
            print("- " + text.replace("\n", "\n  "), file=sys.stderr)
    return 1 if failures else 0


def _read_request(args: argparse.Namespace) -> tuple[list[int], Callable[[], list[str]], str]:
    """Architectures, what to run, and a name for the pack. Raises Usage or ValueError for what makes no sense."""
    if active.emulated():
        raise Usage("TRITON_INTERPRET is set, so kernels are interpreted and nothing can be compiled; unset it for this command")
    archs = precompile.archs(args.arch)
    if args.jobs is not None and args.jobs < 1:
        raise Usage(f"--jobs {args.jobs}: at least 1")
    if args.steps is not None and args.steps < 1:
        raise Usage(f"--steps {args.steps}: at least 1")
    if args.script is not None:
        if args.op:
            raise Usage("--op and --script exclude each other: a script's own kernels are compiled; run the command twice to add to a pack")
        if not args.script:
            raise Usage("--script: names no file")
        script, argv, steps = Path(args.script[0]), args.script[1:], args.steps
        if not script.is_file():
            raise Usage(f"--script {script}: no such file")
        return archs, lambda: run_script(script, argv, steps), script.stem
    ops = _select_launching(args.op)
    types = [dtypes.as_dtype(t.strip()).name for t in args.dtypes.split(",") if t.strip()]
    return archs, lambda: run_ops(ops, types), "-".join(op.name for op in ops) if args.op and len(ops) < 4 else "ops"


def _select_launching(asked: list[str]) -> list[Op]:
    """The ops that `--op` names and that launch kernels. Raises Usage for a name of one that launches none, and where none of them does."""
    found = op_selection.select_ops(asked)
    launching = [op for op in found if op.forward is not None]
    by_name = {name for word in asked for name in word.split(",")}
    for op in found:
        if op.forward is None and (op.name in by_name or not launching):
            raise Usage(f"--op: {op.name} launches no kernel (it is a view, or composed of other ops)")
    return launching


def _packs() -> str:
    home = cubin_cache.cache_folder()
    return str(home / "packs") if home is not None else "the cache's packs folder (TRITENSOR_CACHE is empty: there is none)"


def _default_out(name: str) -> Path:
    home = cubin_cache.cache_folder()
    if home is None:
        raise Usage("TRITENSOR_CACHE is empty, so there is no cache to put the pack into; give --out")
    return home / "packs" / f"{name}-triton-{cubin_cache.version()}.ttpack"
