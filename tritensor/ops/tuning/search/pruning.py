"""Pruning of configs by compiling them, before any is run: which do not compile, spill or cannot be launched, and how long each should take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tritensor.cuda.compiler import child_processes
from tritensor.cuda.compiler.kernel_report import report
from tritensor.cuda.compiler.precompile import warm
from tritensor.cuda.compiler.prediction import RATES, Forecast, forecast_all
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.ground.errors import LaunchError

SLOWER = 2.0  # times the best prediction: what is predicted to take longer is not timed. The prediction is a bound, so this is wide.
LAUNCH_US = 2.0  # microseconds between two kernels of one stream: without it a k split in two launches would look free


class Facts(NamedTuple):
    """What is known of one launch: predicted microseconds (None: no rates are known for the GPU), bytes spilled, why it cannot run ("")."""

    us: float | None
    spilled: int
    limit: str
    error: str = ""


class Verdict(NamedTuple):
    """What compiling showed of one config: predicted microseconds of its corner's launches, what limits the longest, why it is not timed ("")."""

    config: Any
    us: float | None
    limit: str
    dropped: str


def _uses(call: Call, arch: int) -> Facts:
    """What a launch uses, for a GPU whose rates are not known; never raises for what the compiler says."""
    try:
        return Facts(None, report(call.spec, arch).spilled, "")
    except LaunchError as error:
        return Facts(None, 0, "", " ".join(str(error).strip().splitlines()[-1].split())[:160])


def _predicted(found: Forecast) -> Facts:
    spilled = found.report.spilled if found.report is not None else 0
    if found.failure or found.prediction is None:
        return Facts(None, spilled, "", found.failure)
    return Facts(found.prediction.microseconds, spilled, found.prediction.limit)


def compiled(
    calls: Sequence[Call], arch: int, processes: int | None, seconds: float = 120.0, done: Callable[[], None] = lambda: None
) -> dict[Call, Facts]:
    """The facts of every launch, compiled in child processes: a crash or a hang of the compiler costs one launch."""
    found: dict[Call, Facts] = {}
    ends: Iterable[tuple[int, Any]]
    if arch in RATES:
        ends = forecast_all(calls, arch, processes, seconds)
    else:
        warm(arch)
        ends = child_processes.each(lambda call: _uses(call, arch), calls, processes, seconds)
    for n, end in ends:
        found[calls[n]] = _predicted(end) if isinstance(end, Forecast) else end if isinstance(end, Facts) else Facts(None, 0, "", str(end))
        done()
    return found


def judged(configs: Sequence[Any], calls: Sequence[tuple[Call, ...] | str], facts: dict[Call, Facts]) -> list[Verdict]:
    """Verdicts of configs, the heuristic first; in place of its launches a config may have the error that its corner raised.

    Not timed are configs that cannot run, that spill more than the heuristic, that launch what an earlier one launches, and that are predicted
    to take over twice as long as the best.
    """
    seen: dict[tuple[Call, ...], Any] = {}
    found: list[Verdict] = []
    spilled = sum(facts[c].spilled for c in calls[0]) if not isinstance(calls[0], str) else 0
    for config, launched in zip(configs, calls, strict=True):
        if isinstance(launched, str):
            found.append(Verdict(config, None, "", launched))
            continue
        known = [facts[c] for c in launched]
        error = next((k.error for k in known if k.error), "")
        us = None if error or any([k.us is None for k in known]) else sum(k.us or 0.0 for k in known) + LAUNCH_US * len(known)
        longest = max(known, key=lambda k: k.us or 0.0, default=None)
        if launched in seen:
            error = f"launches what {seen[launched]} does"
        elif not error and sum(k.spilled for k in known) > spilled:
            error = f"spills {sum(k.spilled for k in known)} bytes of registers, the heuristic {spilled}"
        # two configs may compile to one kernel, where a shape caps a tile
        seen.setdefault(launched, config)
        found.append(Verdict(config, us, longest.limit if longest else "", error))
    best = min((v.us for v in found if v.us is not None and not v.dropped), default=None)
    if best is None:
        return found
    far = f"predicted over {SLOWER:.0f} times slower than the best"
    return [v if v.dropped or v.us is None or v.us <= SLOWER * best or i == 0 else v._replace(dropped=far) for i, v in enumerate(found)]


def regret(verdicts: Sequence[Verdict]) -> float | None:
    """How much slower the heuristic, which comes first, is predicted to be than the best: 0.1 is a tenth. None where nothing is predicted."""
    mine, best = verdicts[0].us, min((v.us for v in verdicts if v.us is not None and (not v.dropped or v is verdicts[0])), default=None)
    return mine / best - 1 if mine is not None and best else None
