"""One run of `bench gpu`: its parts, the report that grows, and the clock that thins the repeats."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bench.gpu.clock import Ours
from bench.gpu.host import calls as host_calls
from bench.gpu.host import time_host
from bench.gpu.peers import counterpart, forget_optimizers
from bench.gpu.roofline import best, measure_roof
from bench.gpu.rows import Case, time_ours, time_peer
from bench.gpu.training import GPT2_SMALL, GPTShape, Work, works
from bench.gpu.training import time_step as time_training
from bench.reports.report import Report, clocks

QUICK_SECONDS = 450.0  # all of it, kernels compiled and torch imported
MOST = 0.4  # seconds for one library on one row
LEAST = 0.02
PARTS = ("roofline", "training", "host", "ops", "compile")
PEERS = ("torch", "compile")  # torch as it is, and under torch.compile


class DeviceGoneError(Exception):
    """The GPU answers this process no more; the message says since when."""


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
    gpts: Sequence[GPTShape] = (GPTShape(), GPT2_SMALL)
    most: float = MOST
    peers: Sequence[str] = PEERS  # what to time beside ours
    named: bool = False  # the ops were chosen by name: every row of theirs is worth a compilation


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
        """`run()`; None when it raises, and then the report has the error, as `lib`'s; None, too, for what killed an earlier process.

        Raises DeviceGoneError when the GPU answers no more: nothing that follows in this process could be timed.
        """
        if key in self.report.content["died"]:
            return None
        self.report.begin(key)
        try:
            found = run()
        except KeyboardInterrupt:
            self.report.begin("")  # whoever stops a run says nothing of the row that it was at
            raise
        except Exception as error:  # whatever it is: one row that fails must not cost the rest of a run
            self.report.fail(key, error, peer=lib is self.peer)
            print(f"FAILED {key}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            self._check_device(key)
            found = None
        self.report.begin("")
        return found

    def _check_device(self, key: str) -> None:
        """Raise DeviceGoneError where a failure took the GPU along: an illegal access ends a process's context for good."""
        try:
            self.ours.synchronize()
        except Exception as lost:  # whatever the driver says
            raise DeviceGoneError(f"{key}: the GPU answers this process no more ({str(lost)[:200]}); --resume goes on behind it") from lost

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
        if self.report.content["roofline"] or "roofline" in self.report.content["died"]:
            return
        self.report.begin("roofline")
        found = measure_roof(self._libs(), self.plan.most, self.plan.copy_bytes, self.plan.sides)
        for message in found.pop("failed"):
            what = message.partition(":")[0]
            self.report.fail(f"roofline: {what}", RuntimeError(message), peer=what.endswith("torch"))
        self.report.content["roofline"] = found
        self.report.save()
        self._check_device("roofline")
        self.report.begin("")

    def training(self) -> None:
        """Training steps, eager and as graph, of both libraries."""
        for work in works(self.plan.batch, self.plan.gpts):
            key = f"{work.name}, {work.dtype}"
            for lib in self._libs():
                if f"{'torch_' if lib is self.peer else ''}eager_ms" in self.report.content["training"].get(key, {}):
                    continue
                self._train(f"training: {key}, {lib.name}", lib, work)
                lib.free()

    def _train(self, label: str, lib: Ours, work: Work, compiled: bool = False) -> None:
        seconds = min(2.0, 5 * self.plan.most)
        found = self._try(label, lib, lambda: time_training(lib, work, seconds, compiled=compiled))
        self.report.put("training", f"{work.name}, {work.dtype}", found or {})

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
            if self.peer is not None and "torch" in self.plan.peers:
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
        if self.peer is None or "compile" not in self.plan.peers:
            return
        todo = [c for c in self.plan.cases if self._worth_compiling(c)]
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

    def _worth_compiling(self, case: Case) -> bool:
        """Whether torch has the op and a compilation is to come: where torch failed as it is, it is none of torch.compile's."""
        row, failed = self.report.content["rows"].get(case.key, {}), self.report.content["peer_failed"]
        if "ms" not in row or "compile_ms" in row or f"torch: {case.key}" in failed:
            return False
        return (case.largest or self.plan.named) and not case.op.mutates and counterpart(case.op.name) is not None

    def _compiled_training(self) -> None:
        """The training steps under torch.compile: they take tens of seconds to compile, so only where there is time."""
        assert self.peer is not None
        for work in works(self.plan.batch, self.plan.gpts):
            key = f"{work.name}, {work.dtype}"
            if "compile_eager_ms" in self.report.content["training"].get(key, {}) or "training" not in self.plan.parts:
                continue
            if self.left() < 90:
                self.report.leave(f"torch.compile: training: {key}", "out of time; --resume goes on")
                continue
            self._train(f"torch.compile: training: {key}", self.peer, work, compiled=True)

    def _tidy(self) -> None:
        forget_optimizers()
        for lib in self._libs():
            lib.free()
