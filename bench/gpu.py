"""Every op of the table on the GPU: time, share of the roofline measured in the same run, ratio to torch eager and compiled; training steps.

`python -m bench gpu --quick` fits in eight minutes. The report is written as it grows, so a run that is cut short loses nothing and
`--resume` goes on with it; no failure stops the run, and the exit code is 1 when there was one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.gpu_clock import Ours, Torch
from bench.gpu_host import calls as host_calls
from bench.gpu_host import time_host
from bench.gpu_report import RESULTS, ROOT, Report, clocks, facts, lines, slug, torch_installed
from bench.gpu_rows import Case, cases, ordered, time_ours, time_peer
from bench.gpu_training import GPTShape, works
from bench.gpu_training import time_step as time_training
from bench.peers import forget_optimizers
from bench.roofline import best, measure_roof

QUICK_SECONDS = 450.0  # all of it, kernels compiled and torch imported
MOST = 0.4  # seconds for one library on one row
LEAST = 0.02
PARTS = ("roofline", "training", "host", "ops", "compile")


class Plan(NamedTuple):
    """What to time and on how much. Tests make the sizes small."""

    cases: list[Case]
    untimed: dict[str, str]  # ops without a row, and why
    quick: bool
    seconds: float | None
    parts: Sequence[str] = PARTS
    copy_bytes: int = 512 << 20
    sides: dict[str, int] | None = None
    batch: int = 64
    gpt: GPTShape = GPTShape()
    most: float = MOST


class Bench:
    """One run: the libraries, the report that grows, and the clock that thins the repeats."""

    def __init__(self, plan: Plan, report: Report, ours: Ours, peer: Ours | None, l2: int) -> None:
        self.plan = plan
        self.report = report
        self.ours = ours
        self.peer = peer
        self.l2 = l2
        self._start = time.monotonic()

    # the clock
    def left(self) -> float:
        """Seconds left; without a limit, as good as endless."""
        return 1e9 if self.plan.seconds is None else self.plan.seconds - (time.monotonic() - self._start)

    def _share(self, remaining: int, reserve: float = 0.0) -> float:
        """Seconds for one library on one of the `remaining` rows: a third of a row's share, since most of it goes to set-up."""
        return min(self.plan.most, max(LEAST, (self.left() - reserve) / max(remaining, 1) / 3))

    def _try(self, key: str, lib: Ours | None, run: Callable[[], Any]) -> Any:
        """`run()`; None when it raises, and then the report has the error, as `lib`'s."""
        try:
            return run()
        except KeyboardInterrupt:
            raise
        except Exception as error:  # whatever it is: one row that fails must not cost the rest of a run
            self.report.fail(key, error, peer=lib is self.peer)
            print(f"FAILED {key}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            return None

    # the parts
    def run(self) -> int:
        """All parts; the exit code."""
        try:
            for part in self.plan.parts:
                getattr(self, part)()
                print(f"{part}: done at {time.monotonic() - self._start:.0f} s", flush=True)
        finally:
            self.report.content["clocks"]["after"] = clocks()
            self.report.content["seconds"] = round(time.monotonic() - self._start, 1)
            self.report.save()
        return 1 if self.report.content["failed"] else 0

    def _libs(self) -> list[Ours]:
        return [self.ours] + ([self.peer] if self.peer else [])

    def roofline(self) -> None:
        """Copy bandwidth and matrix rates; rows are held against them."""
        if self.report.content["roofline"]:
            return
        found = measure_roof(self._libs(), self.plan.most, self.plan.copy_bytes, self.plan.sides)
        for message in found.pop("failed"):
            what = message.partition(":")[0]
            self.report.fail(f"roofline: {what}", RuntimeError(message), peer=what.endswith("torch"))
        self.report.content["roofline"] = found
        self.report.save()

    def training(self) -> None:
        """Training steps, eager and as graph, of both libraries."""
        for work in works(self.plan.batch, self.plan.gpt):
            key = f"{work.name}, {work.dtype}"
            for lib in self._libs():
                if f"{'torch_' if lib is self.peer else ''}eager_ms" in self.report.content["training"].get(key, {}):
                    continue
                seconds = min(2.0, 5 * self.plan.most)
                found = self._try(f"training: {key}, {lib.name}", lib, lambda lib=lib, work=work, s=seconds: time_training(lib, work, s))  # type: ignore[misc]
                self.report.put("training", key, found or {})
                lib.free()

    def host(self) -> None:
        """Host microseconds of single ops."""
        for name in host_calls(self.ours):
            for lib in self._libs():
                if f"{'torch_' if lib is self.peer else ''}host_us" in self.report.content["host"].get(name, {}):
                    continue
                found = self._try(f"host: {name}, {lib.name}", lib, lambda lib=lib, name=name: time_host(lib, name, self.plan.most / 4))  # type: ignore[misc]
                self.report.put("host", name, found or {})

    def ops(self) -> None:
        """Every case, ours and torch's one after the other."""
        for name, why in self.plan.untimed.items():
            self.report.leave(name, why)
        roof = best(self.report.content["roofline"]) if self.report.content["roofline"] else best({"copy_gbs": {}, "tflops": {}})
        todo = [c for c in self.plan.cases if "ms" not in self.report.content["rows"].get(c.key, {})]
        for i, case in enumerate(todo):
            if self.left() < 10:
                self.report.leave(case.key, "out of time; --resume goes on")
                continue
            seconds = self._share((len(todo) - i) * len(self._libs()))
            row = self._try(case.key, self.ours, lambda c=case, s=seconds: time_ours(self.ours, c, roof, self.l2, s))  # type: ignore[misc]
            if row is None:
                continue
            self.report.put("rows", case.key, row)
            if self.peer is not None:
                seen = self._try(f"torch: {case.key}", self.peer, lambda c=case, s=seconds: time_peer(self.peer, c, self.l2, s))  # type: ignore[misc, arg-type]
                self.report.put("rows", case.key, seen or {})
                if seen == {}:
                    self.report.put("rows", case.key, {"torch_note": "torch has no such op"})
            if i % 10 == 9:
                self._tidy()
                print(f"{i + 1} of {len(todo)} rows, {time.monotonic() - self._start:.0f} s", flush=True)
        self._tidy()

    def compile(self) -> None:
        """torch.compile, as far as the time goes: the largest rows of the ops that are more than a formula first."""
        if self.peer is None:
            return
        rows = self.report.content["rows"]
        todo = [
            c
            for c in self.plan.cases
            if c.largest and not c.op.mutates and "torch_ms" in rows.get(c.key, {}) and "compile_ms" not in rows[c.key]
        ]
        self._compiled_training()
        for i, case in enumerate(todo):
            key = f"torch.compile: {case.key}"
            if self.left() < 15:
                self.report.leave(key, "out of time; --resume goes on")
                continue
            seconds = self._share(len(todo) - i)
            found = self._try(key, self.peer, lambda c=case, s=seconds: time_peer(self.peer, c, self.l2, s, compiled=True))  # type: ignore[misc, arg-type]
            self.report.put("rows", case.key, found or {"compile_note": "failed"})
            if i % 10 == 9:
                self.peer.t.compiler.reset()
                self._tidy()

    def _compiled_training(self) -> None:
        """The training steps under torch.compile: they take tens of seconds to compile, so only where there is time."""
        assert self.peer is not None
        for work in works(self.plan.batch, self.plan.gpt):
            key = f"{work.name}, {work.dtype}"
            if "compile_eager_ms" in self.report.content["training"].get(key, {}) or "training" not in self.plan.parts:
                continue
            if self.left() < 90:
                self.report.leave(f"torch.compile: training: {key}", "out of time; --resume goes on")
                continue
            found = self._try(
                f"torch.compile: training: {key}",
                self.peer,
                lambda work=work: time_training(self.peer, work, min(2.0, 5 * self.plan.most), compiled=True),  # type: ignore[misc, arg-type]
            )
            self.report.put("training", key, found or {})

    def _tidy(self) -> None:
        forget_optimizers()
        for lib in self._libs():
            lib.free()


def plan(given: argparse.Namespace) -> Plan:
    """What the flags ask for."""
    names = [n for n in given.ops.split(",") if n] if given.ops else None
    found, untimed = [], {}
    for op in ordered(names):
        of_op = list(cases(op, given.quick))
        found += of_op
        if not of_op:
            untimed[op.name] = "a view: it moves no data and costs the host alone" if op.view else "its record has no sizes"
    if given.host:
        parts: tuple[str, ...] = ("host",)
    else:
        parts = ("roofline", "ops", "compile") if names else PARTS
    return Plan(found, untimed, given.quick, given.seconds or (QUICK_SECONDS if given.quick else None), parts)


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the largest size of elementwise ops in float32 alone; eight minutes in all")
    parser.add_argument("--ops", default="", help="names with commas between them: these alone, without training steps")
    parser.add_argument("--host", action="store_true", help="the host cost of eager ops alone")
    parser.add_argument("--seconds", type=float, help="time limit; what it leaves out is listed")
    parser.add_argument("--out", type=Path, help="the report (default: bench/results/<gpu>.json)")
    parser.add_argument("--resume", action="store_true", help="keep what the report holds and time the rest")
    parser.add_argument("--no-torch", action="store_true", help="without the peer")
    parser.add_argument("--no-warm", action="store_true", help="do not compile ahead")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the tables of a report and time nothing")
    return parser.parse_args(argv)


def compile_ahead(given: argparse.Namespace, arch: int) -> None:
    """Compile what will be launched, in one process per core; a failure there shows again, by name, when its row is timed."""
    command = [sys.executable, "-m", "bench.gpu_warm", "--arch", str(arch), *(["--quick"] if given.quick else []), "--ops", given.ops]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    if done.returncode:
        print("compiling ahead failed in part; those kernels are compiled when they are launched", flush=True)


def peer_library() -> Ours | None:
    """torch on the GPU: full float32 everywhere, the fastest of cuDNN's algorithms; None where torch is not installed or sees no GPU."""
    if not torch_installed():
        print("torch is not installed: no ratios")
        return None
    import torch

    if not torch.cuda.is_available():
        print(f"torch {torch.__version__} sees no GPU: no ratios")
        return None
    import torch._functorch.config as functorch

    functorch.donated_buffer = False  # a compiled backward is called again and again with retain_graph=True
    torch.backends.cudnn.allow_tf32 = False  # float32 is float32, as in torch's own default for matrix products and in ours
    torch.backends.cudnn.benchmark = True
    return Torch(torch)


def why_not() -> str:
    """Why nothing can be timed on this machine; "" where there is a GPU."""
    from tritensor import cuda
    from tritensor.cuda.runtime.serving import emulated

    return "TRITON_INTERPRET=1 emulates it; unset it" if emulated() else cuda.why()


def main(argv: Sequence[str] | None = None) -> int:
    """Time, print, write; the exit code is 1 when anything failed and 2 where there is no GPU."""
    given = options(argv)
    if given.table:
        import json

        print("\n".join(lines(json.loads(given.table.read_text()))))
        return 0
    from tritensor import cuda

    start = time.monotonic()
    why = why_not()
    if why:
        print(f"bench gpu needs a GPU: {why}")
        return 2
    properties = cuda.get_device_properties(0)
    major, minor = properties.capability
    if not (given.no_warm or given.host):  # the host's few ops are compiled while they are warmed up
        compile_ahead(given, 10 * major + minor)
    wanted = plan(given)
    if wanted.seconds is not None:
        wanted = wanted._replace(seconds=wanted.seconds - (time.monotonic() - start))
    head = facts(properties, given.quick)
    path = given.out or RESULTS / f"{slug(properties.name)}.json"
    report = Report.resumed(path, head) if given.resume else Report(path, head)
    code = Bench(wanted, report, Ours(), None if given.no_torch else peer_library(), properties.l2_cache_size).run()
    print("\n".join(lines(report.content)))
    print(f"written to {path}")
    return code


if __name__ == "__main__":
    sys.exit(main())
