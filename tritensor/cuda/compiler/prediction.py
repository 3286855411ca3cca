"""Predicted time of a kernel from its machine code: waves x the slowest of issuing instructions, tensor cores and bytes."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tritensor.cuda.compiler import child_processes
from tritensor.cuda.compiler.compile import compile
from tritensor.cuda.compiler.kernel_report import Report, report
from tritensor.cuda.compiler.occupancy import LIMITS, occupancy
from tritensor.cuda.compiler.precompile import warm
from tritensor.cuda.compiler.program_work import Passes, ProgramWork, program_work
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.cuda.compiler.sass import Loop
from tritensor.ground.errors import LaunchError


class Rates(NamedTuple):
    """What a GPU does at best. `ghz` is the clock all else counts in; `bandwidth` bytes of its memory a second, `second_level` bytes of
    its second-level cache a clock, `latency` clocks until memory answers. `flops`: of the tensor cores of one multiprocessor, a clock,
    by the type that is multiplied. `mma`: the share of these that mma.sync gets, the instruction of the generation before."""

    name: str
    multiprocessors: int
    ghz: float
    bandwidth: float
    second_level: float
    latency: float
    flops: Mapping[str, float]
    mma: float


_A100 = {"f16": 2048, "bf16": 2048, "tf32": 1024, "i8": 4096, "f64": 128}
_H200 = {"f16": 4096, "bf16": 4096, "tf32": 2048, "f8": 8192, "i8": 8192, "f64": 256}
_B200 = {"f16": 8192, "bf16": 8192, "tf32": 4096, "f8": 16384, "f4": 32768, "i8": 16384, "f64": 128}
# Sources: "NVIDIA A100 Tensor Core GPU Architecture" (108 multiprocessors, 1.41 GHz, 2039 GB/s with 80 GB, 312 TFLOP/s in 16 bits,
# 5120 bytes of second-level cache a clock); "NVIDIA H100 Tensor Core GPU Architecture" and the data sheet of the H200 (132, 4.8 TB/s,
# 989 TFLOP/s in 16 bits; 1.8 GHz is what it holds under load); "NVIDIA Blackwell Architecture Technical Brief" (8 TB/s, 2.25 PFLOP/s in 16
# bits, on 148). Of the later two no rate of the second level is published: 64 bytes a clock for each multiprocessor are taken. Latencies, and
# the 63 % of the peak that mma.sync reaches on Hopper: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
# Microbenchmarking" (2024). What mma.sync reaches on Blackwell is not published: the rate of the A100's multiprocessor is taken.
RATES = {
    80: Rates("A100", 108, 1.41, 2.039e12, 5120, 466, _A100, 1.0),
    90: Rates("H200", 132, 1.8, 4.8e12, 132 * 64, 479, _H200, 0.63),
    100: Rates("B200", 148, 1.85, 8.0e12, 148 * 64, 479, _B200, 0.25),
}
PORT = 64  # bytes that one multiprocessor gets of the second-level cache in a clock, as of sm_80 (Luo et al., and the A100's architecture paper)
ISSUE = 4  # instructions of warps that a multiprocessor issues in a clock: one for each of its quarters, 128 lanes in all


class Prediction(NamedTuple):
    """What one launch should take at best, in clocks of the whole launch: the largest of three is the time.

    waves: programs / (programs resident on the whole GPU). tail: the share of the last round's places that is filled, over all rounds: with
        one resident program for each multiprocessor, 1.1 waves run at 0.55. In a single wave, programs that do less than the longest count as well.
    issue: clocks to issue all instructions. tensor: clocks of the tensor cores. bytes: clocks to move the data.
    limit: "issue", "tensor" or "bytes", the largest. microseconds: its time. passes: of the hot loop by one program (0: no loop).
    blocks: programs resident on a multiprocessor, and with 0 nothing can run: microseconds is infinite.
    assumed: what the model could not know, in words. wide: the share of the bytes that programs move which goes by accesses of 16 bytes or more
        (of a row that a warp reads more than once, 1 at most). memory: bytes between memory and the GPU, each array once in each direction.
    """

    waves: float
    tail: float
    issue: float
    tensor: float
    bytes: float
    limit: str
    microseconds: float
    passes: float
    blocks: int
    assumed: tuple[str, ...]
    wide: float = 1.0
    memory: float = 0.0


class Forecast(NamedTuple):
    """What is known of one recorded launch without a GPU: what it uses and the time that this predicts, or in one line why it cannot run.
    A kernel that compiles and cannot run, for too much shared memory or too many registers, has a report as well."""

    report: Report | None
    prediction: Prediction | None
    failure: str = ""

    @property
    def microseconds(self) -> float:
        """The predicted time; infinite for what cannot run."""
        return self.prediction.microseconds if self.prediction is not None and not self.failure else math.inf


def forecast(call: Call, arch: int) -> Forecast:
    """Compile a recorded launch for compute capability `arch` (80, 90, 100) and predict it. Raises LaunchError when it does not compile."""
    made = report(call.spec, arch)
    work = program_work(compile(call.spec, arch).asm["ttir"], call.values, call.grid)
    found = predict(made, arch, math.prod(call.grid), work, call.sizes())
    return Forecast(made, found, "" if found.blocks else cannot_run(made))


def forecast_all(
    calls: Sequence[Call], arch: int, processes: int | None = None, seconds: float | None = None
) -> Iterator[tuple[int, Forecast]]:
    """(place, Forecast) of every launch, in the order in which they end; compiled in child processes (None: one for each core), so that a
    compiler that crashes, or works at one for longer than `seconds`, costs one launch.
    What was compiled before comes from Triton's disk cache, in some milliseconds.

    What the compiler prints is swallowed, but for the line that says why a kernel failed. The caller must not have started the GPU's
    driver, which does not live through a fork, and Triton must not interpret (TRITON_INTERPRET).
    """
    warm(arch)

    def one(call: Call) -> Forecast:
        with _printed() as said:
            try:
                return forecast(call, arch)
            except LaunchError as error:
                return Forecast(None, None, _reason(str(error), said()))
            except Exception as error:  # a fault of the model itself: it must not look like a crash of the compiler
                return Forecast(None, None, f"{type(error).__name__}: {error}")

    for n, found in child_processes.each(one, calls, processes, seconds):
        yield n, Forecast(None, None, str(found)) if isinstance(found, child_processes.Died) else found


def fastest(configs: Sequence[Sequence[Forecast]]) -> int | None:
    """The place of the best of several configs, each given by the forecasts of all launches that it leads to; None where none can run.

    Within one per cent the model cannot tell times apart: of those, configs that keep registers in memory are left out as long as there
    are others, then those stay that leave most room below the limit (least of issue + tensor + bytes, within 5 %), and of these the first.
    """
    totals = [sum(f.microseconds for f in found) if found else math.inf for found in configs]
    least = min(totals, default=math.inf)
    # nothing runs: every place would be as good as another
    if math.isinf(least):
        return None
    near = [n for n, total in enumerate(totals) if total <= 1.01 * least]
    near = [n for n in near if not any(f.report is not None and f.report.spilled for f in configs[n])] or near
    work = {n: sum(p.issue + p.tensor + p.bytes for f in configs[n] if (p := f.prediction) is not None) for n in near}
    return next(n for n in near if work[n] <= 1.05 * min(work.values()))


def cannot_run(made: Report) -> str:
    """Why no program of a compiled kernel fits a multiprocessor, in words."""
    has = LIMITS[made.arch]
    if made.shared > has.shared_per_block:
        return f"needs {made.shared} bytes of shared memory; a program on sm_{made.arch} has at most {has.shared_per_block}: fewer stages, smaller tiles"
    if made.tensor_memory > has.tensor_memory:
        return f"needs {made.tensor_memory} columns of tensor memory; a multiprocessor of sm_{made.arch} has {has.tensor_memory}: smaller tiles"
    return f"needs {made.registers} registers for each of {32 * made.warps} threads; a multiprocessor has {has.registers}: fewer warps"


@contextmanager
def _printed() -> Iterator[Callable[[], str]]:
    """Within the block all that this process prints goes to a file; the function given reads it. For child processes: it moves the process's outputs."""
    with tempfile.TemporaryFile() as file:
        # the compiler's passes print from C++, past sys.stderr
        kept = os.dup(1), os.dup(2)
        try:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)

            def read() -> str:
                file.seek(0)
                return file.read().decode(errors="replace")

            yield read
        finally:
            for stream, old in enumerate(kept, 1):
                os.dup2(old, stream)
                os.close(old)


def _reason(error: str, printed: str) -> str:
    """One line of a compiler's failure: what it stumbled over, which its passes print and its exception does not say."""
    lines = [line.strip() for line in error.strip().splitlines() if line.strip(" ^\t")]
    assembler = [line.partition(":")[2] for line in lines if line.startswith("ptxas")]
    last = " ".join((assembler or lines[-1:])[0].split())
    # all that Triton's exception says; the reason was printed
    if "PassManager::run failed" in last:
        told = [line.partition("error: ")[2].strip() for line in printed.splitlines() if "error: " in line]
        last = told[0] if told else last
    return last[:200]


def predict(made: Report, arch: int, programs: int, work: ProgramWork, sizes: Sequence[float] = ()) -> Prediction:
    """The time of a launch of `programs` programs of a compiled kernel on the GPU that RATES has for `arch`.

    Args:
        work: what one program does (see program_work.py). sizes: bytes of each array argument by its place; what programs move beyond
            an array's size is found in the second-level cache, and with no size given all that is moved comes from memory.
    With R = ceil(programs / multiprocessors), the programs that the fullest multiprocessor runs:

    - issue: instructions of a warp x ceil(R x warps of a program / 4), the warps of each quarter. A loop's instructions count as often as
      the kernel's text says that the loop runs, divided by how many of its passes the assembler made one (by the bytes that a pass
      moves); of two sides of a branch the longer counts, and what is skipped by a predicate. Loops that the text does not have count once.
    - tensor: R x flops of a program / the tensor cores' rate. Float32 products without tensor cores are instructions and counted there.
    - bytes: the slowest of memory (each array once, whichever its programs' order), the second-level cache (all that is moved), and R x what a
      program moves through the port of its multiprocessor. Memory's rate falls where too little is under way: resident programs x the loads
      of their warps' hot loop (or shared memory that is filled behind their backs), over the latency.

    It is a lower bound, of use to compare configs: waiting for results, bank conflicts and the cost of a launch (some microseconds) are
    not in it. Raises KeyError for an arch that RATES does not list.
    """
    has = RATES[arch]
    held = occupancy(arch, made.registers, made.shared, made.warps, made.tensor_memory).blocks
    rounds = -(-programs // has.multiprocessors)
    if not programs or not held:
        return Prediction(0.0, 1.0, 0.0, 0.0, 0.0, "bytes", float("inf") if programs else 0.0, 0.0, held, work.assumed)
    executed, wide, passes = _executed(made, work)
    uneven = work.longest if programs <= held * has.multiprocessors else 1.0  # of more programs, a multiprocessor gets short and long ones
    issue = uneven * executed * -(-rounds * made.warps // ISSUE)
    tensor = uneven * rounds * sum(flops / rate for kind, flops in work.flops.items() if (rate := _tensor_rate(has, made, kind)))
    moved = programs * work.moved()
    far = _from_memory(work, programs, sizes)
    resident = min(programs, held * has.multiprocessors)
    rate = has.bandwidth / has.ghz / 1e9
    if made.loads or made.bulk:  # nothing waits for what is stored
        rate = min(rate, resident * _under_way(made) / has.latency)
    clocks = max(far / rate if far else 0.0, moved / has.second_level, uneven * rounds * work.moved() / PORT)
    largest, limit = max((issue, "issue"), (tensor, "tensor"), (clocks, "bytes"))
    waves = programs / (held * has.multiprocessors)
    tail = programs / (has.multiprocessors * rounds) / uneven
    return Prediction(waves, tail, issue, tensor, clocks, limit, largest / has.ghz / 1e3, passes, held, work.assumed, wide, far)


def _tensor_rate(has: Rates, made: Report, kind: str) -> float:
    """Flops of one multiprocessor in a clock; 0 where no tensor core multiplies this type in this kernel."""
    if not made.tensor:
        return 0.0
    rate = has.flops.get("f8" if kind.startswith("f8") else "f4" if kind.startswith("f4") else kind, 0.0)
    return rate * (has.mma if "mma.sync" in made.tensor and kind != "f64" else 1.0)


def _from_memory(work: ProgramWork, programs: int, sizes: Sequence[float]) -> float:
    """Bytes between memory and the GPU: each array once in each direction that is used."""
    total = 0.0
    for table in (work.loads, work.stores):
        for place, nbytes in table.items():
            known = sizes[place] if 0 <= place < len(sizes) else 0
            total += min(programs * nbytes, known) if known else programs * nbytes
    return total


def _under_way(made: Report) -> float:
    """Bytes that a program has asked for at a time: the loads of its hot loop (of all its code where there is none) by all its threads, or the
    shared memory that it fills in advance."""
    loads = made.loop_loads if made.loop_loads else made.loads
    in_registers = 32 * made.warps * sum(int(bits) // 8 * n for bits, n in loads.items())
    return max(in_registers, made.shared if made.bulk else 0, 1)


_SHORT = 32  # instructions: a shorter loop that the text does not have waits for a barrier or reduces an angle


def _executed(made: Report, work: ProgramWork) -> tuple[float, float, float]:
    """Instructions that one warp of a program executes, the share of bytes that wide accesses move, and the passes of the hot loop."""
    inner = [a for a in made.loops if not any(b != a and a.first <= b.first and b.last <= a.last for b in made.loops)]
    theirs = [p for i, p in enumerate(work.loops) if all(q.parent != i for q in work.loops)]
    long = [loop for loop in inner if loop.instructions >= _SHORT or loop.bytes or loop.tensor]
    if len(long) == len(theirs):
        pairs = list(zip(long, theirs, strict=True))
    else:  # the assembler took loops apart, unrolled them whole or added its own: the longest stands for all that the text has
        hot = max(long, key=lambda loop: loop.instructions, default=None)
        busiest = max(theirs, key=lambda p: (p.bytes, p.passes), default=None)
        pairs = [(hot, busiest)] if hot is not None and busiest is not None else []
    times = {loop: _machine_passes(loop, p, made) for loop, p in pairs}
    around = {loop: max(work.loops[p.parent].passes, 1.0) if p.parent >= 0 else 1.0 for loop, p in pairs}

    def total(once: float, of: Callable[[Loop], int]) -> float:
        for loop, n in times.items():
            once += (max(n, 1.0) - 1.0) * of(loop)
            for outer in made.loops:
                if outer != loop and outer.first <= loop.first and loop.last <= outer.last:
                    once += (around[loop] - 1.0) * (of(outer) - of(loop))
        return once

    moved, tiles = work.moved(), any(name.startswith("cp.async.bulk") for name in made.bulk)  # TMA moves whole tiles
    wide = moved if tiles else total(made.wide, lambda loop: loop.wide) * 32 * made.warps
    hottest = max(times.items(), key=lambda item: item[0].instructions * item[1], default=(None, 0.0))
    return total(made.longest, lambda loop: loop.instructions), min(wide / moved, 1.0) if moved else 1.0, hottest[1]


def _machine_passes(loop: Loop, text: Passes, made: Report) -> float:
    """Passes of a loop in machine code: those of the text, or fewer where several were made one, which shows in the bytes of a pass."""
    moved = 32.0 * made.warps * loop.bytes
    if not moved or not text.bytes or not text.passes:
        return float(text.passes)
    unrolled = max(round(moved / (text.bytes / text.passes)), 1)
    return float(text.passes / unrolled)
