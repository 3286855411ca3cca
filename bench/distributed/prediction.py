"""Text of a report about many ranks: the model's constants, how far it is off where it was measured, and efficiency up to 1,024 ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.distributed.picture import Curve, draw
from bench.distributed.scaling import (
    ALGORITHMS,
    Bucket,
    Fitted,
    Network,
    Step,
    Timed,
    doubling,
    efficiency,
    fitted,
    fitted_step,
    ring,
    step_seconds,
)

RANKS = tuple(2**i for i in range(11))
STATED = Network(latency=3e-6, bandwidth=12.5e9)  # 100 Gbit/s, 3 us
NARROW = (doubling, ring)  # without halving: what a library does that has a ring and a tree


class Prediction(NamedTuple):
    """The model of a report.

    Attributes:
        slower: how many times as long a step without averages takes on so many ranks of this machine as on one.
        spare: the share of communication that cores without a rank can take over.
        steps: of each number of ranks (seconds measured, seconds by the model), to which the step's `averaging` was fitted.
        unfitted: seconds by the model without it: what all_reduce and steps without averages alone foretell.
        stated: the stated network; it adds as fast as a core of this machine.
    """

    step: Step
    fit: Fitted
    slower: dict[int, float]
    spare: dict[int, float]
    steps: dict[int, tuple[float, float]]
    unfitted: dict[int, float]
    stated: Network

    def efficiencies(self, ranks: int) -> dict[str, float]:
        """Of the fitted constants and of the stated network: nothing is hidden (0) and all that backward can hide (1)."""
        networks = {
            "fitted": (self.fit.network, ALGORITHMS),
            "stated": (self.stated, ALGORITHMS),
            "stated, ring or tree": (self.stated, NARROW),
        }
        return {
            f"{name}, hides {hides}": efficiency(self.step, ranks, network, hides, algorithms)
            for name, (network, algorithms) in networks.items()
            for hides in (0, 1)
        }

    def as_json(self) -> dict[str, Any]:
        """The constants and the efficiencies."""
        return {
            "compute": self.step.compute, "averaging": self.step.averaging,
            "buckets": [b._asdict() for b in self.step.buckets], "latency": self.fit.network.latency,
            "bandwidth": self.fit.network.bandwidth, "turn": self.fit.sharing.turn, "cores": self.fit.sharing.cores, "slower": self.slower,
            "all_reduce_residuals": self.fit.residuals, "step_residuals": {n: model / seen - 1 for n, (seen, model) in self.steps.items()},
            "step_residuals_unfitted": {n: self.unfitted[n] / seen - 1 for n, (seen, _) in self.steps.items()},
            "stated": self.stated._asdict(), "efficiency": {n: self.efficiencies(n) for n in RANKS},
        }  # fmt: skip


def predicted(report: Mapping[str, Any]) -> Prediction:
    """The model of what `python -m bench distributed` measured."""
    cores = report["cores"]
    fit = fitted([Timed(r["nbytes"], r["ranks"], r["seconds"]["async"]) for r in report["all_reduce"]], cores)
    ours = {r["ranks"]: r["tritensor"] for r in report["steps"]}
    alone = {n: times["without_averages"] for n, times in ours.items()}
    buckets = report["timeline"]["1"]["buckets"]
    end = max(ready for _, _, ready, _ in buckets)
    step = Step(ours[1]["step"], tuple(Bucket(nbytes, end - ready) for _, nbytes, ready, _ in buckets))
    slower = {n: seconds / alone[1] for n, seconds in alone.items()}
    spare = {n: min(1.0, max(0.0, cores - n) / n) for n in ours}

    def seconds(step: Step, n: int) -> float:
        return step_seconds(step, n, fit.network, spare[n], fit.sharing, slower[n])

    unfitted = {n: seconds(step, n) for n in ours}
    step = fitted_step(step, {n: times["step"] for n, times in ours.items()}, seconds)
    steps = {n: (times["step"], seconds(step, n)) for n, times in ours.items()}
    return Prediction(step, fit, slower, spare, steps, unfitted, STATED._replace(sums=report["sums"]))


def lines(report: Mapping[str, Any], made: Prediction) -> list[str]:
    """The constants, what is left over where it was measured, and the way to 1,024 ranks."""
    network, sharing = made.fit.network, made.fit.sharing
    text = [
        f"model: compute {1e3 * made.step.compute:.2f} ms and {1e3 * made.step.averaging:.2f} ms on several ranks; all_reduce: latency "
        f"{1e6 * network.latency:.1f} us, bandwidth {network.bandwidth / 1e9:.2f} GB/s, a turn on a shared core "
        f"{1e6 * sharing.turn:.0f} us; beside others on {sharing.cores} cores a step computes "
        + ", ".join(f"{slower:.2f} times as long on {n} ranks" for n, slower in made.slower.items() if n > 1)
    ]
    for n in sorted({r["ranks"] for r in report["all_reduce"]}):
        errors = [(r["nbytes"], e) for r, e in zip(report["all_reduce"], made.fit.residuals, strict=True) if r["ranks"] == n]
        text.append(f"  all_reduce on {n} ranks, model over measured: " + ", ".join(f"{nbytes:,} B {e:+.0%}" for nbytes, e in errors))
    for n, (seen, model) in made.steps.items():
        off = f"{model / seen - 1:+.0%}, unfitted {made.unfitted[n] / seen - 1:+.0%}"
        text.append(f"  a step on {n} ranks: measured {1e3 * seen:.2f} ms, model {1e3 * model:.2f} ms, {off}")
    text.append("efficiency by the model, weak scaling, a core for each rank (nothing hidden - all that backward can hide):")
    text.append(f"{'ranks':>6}{'constants of this machine':>30}{'100 Gbit/s, 3 us':>22}{'ring or tree alone':>22}")
    for n in RANKS[1:]:
        e = made.efficiencies(n)
        pairs = [(e[f"{name}, hides 0"], e[f"{name}, hides 1"]) for name in ("fitted", "stated", "stated, ring or tree")]
        text.append(f"{n:>6}" + "".join(f"{f'{a:.1%} - {b:.1%}':>{w}}" for (a, b), w in zip(pairs, (30, 22, 22), strict=True)))
    return text


def picture(report: Mapping[str, Any], made: Prediction, to: Path) -> None:
    """Draw the efficiencies, and below them what is assumed."""
    network, stated = made.fit.network, made.stated
    every = {n: made.efficiencies(n) for n in RANKS}
    curves = [
        Curve(label, RANKS, [every[n][f"{name}, hides 0"] for n in RANKS], [every[n][f"{name}, hides 1"] for n in RANKS])
        for name, label in (
            ("stated", "100 Gbit/s, 3 us"),
            ("fitted", f"{network.bandwidth / 1e9:.1f} GB/s, {1e6 * network.latency:.0f} us, as fitted here"),
        )
    ]
    seen = [(n, made.step.compute * made.slower[n] / taken) for n, (taken, _) in made.steps.items()]
    mib = sum(b.nbytes for b in made.step.buckets) / 2**20
    off = ", ".join(f"{model / taken - 1:+.0%} on {n}" for n, (taken, model) in made.steps.items() if n > 1)
    size = f"{mib:.1f} MiB of gradients in {len(made.step.buckets)} buckets"
    extra = (
        f"{1e3 * made.step.compute:.1f} ms of compute and, on several ranks, {1e3 * made.step.averaging:.1f} ms of averages beside messages"
    )
    measured = (
        f"Measured: 1, 2 and 4 ranks on {report['cores']} cores ({report['processor']}, {report['date'][:10]}), of which is taken out "
        f"what ranks compute more slowly where they share cores and memory. Model over measured step, to which one of its "
        f"constants is fitted: {off} ranks. All beyond 4 ranks is computed."
    )
    assumed = (
        f"Assumed: a constant batch per rank; {extra}, as fitted; {size}; a core for each rank, all equally fast; no stragglers, no congestion, "
        "one level of network; all_reduce by the fastest of doubling, halving and ring, as MPI chooses; on the stated network a core adds "
        f"{stated.sums / 1e9:.0f} GB/s."
    )
    draw(curves, seen, "Data-parallel MLP 784-512-512-10: efficiency by the model", (measured, assumed), to)
