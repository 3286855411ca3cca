"""From ops to what is timed: targets listed, every config compiled and judged, in the order in which most is to be won."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tritensor.cuda.compiler.cubin_cache import keys
from tritensor.cuda.compiler.recorded_call import Call
from tritensor.ops.table import Op
from tritensor.ops.tuning.search import pruning
from tritensor.ops.tuning.search.pruning import Verdict
from tritensor.ops.tuning.search.targets import SpaceError, Target, calls_of, launches, targets_of
from tritensor.ops.tuning.tuned import fields_of


class Planned(NamedTuple):
    """A target with what compiling showed of its configs, the heuristic's first, and what each launches."""

    target: Target
    verdicts: list[Verdict]
    calls: list[tuple[Call, ...] | str]

    def code(self, config: Any) -> str:
        """What tells the launches of a config from those of another source, compiler, shape or grid: equal in every process."""
        launched = next((c for v, c in zip(self.verdicts, self.calls, strict=True) if v.config == config), ())
        made = hashlib.sha256()
        for call in launched if not isinstance(launched, str) else ():
            made.update(keys(call.spec, 0)[0] + repr((call.grid, call.values)).encode())
        return made.hexdigest()[:16]

    @property
    def regret(self) -> float | None:
        return pruning.regret(self.verdicts)

    def timed(self, most: int) -> list[Any]:
        """The configs that are worth timing beside the heuristic: at most so many, those first that are predicted fastest."""
        left = [v for v in self.verdicts[1:] if not v.dropped]
        left.sort(key=lambda v: v.us if v.us is not None else 0.0)
        return [v.config for v in left[:most]]


class Listed(NamedTuple):
    """A target, its configs (the heuristic's first), and each one's launches, or why it has none."""

    target: Target
    configs: list[Any]
    calls: list[tuple[Call, ...] | str]


def listed(
    ops: Sequence[Op],
    shapes: dict[str, list[Any]] | None,
    types: Callable[[Op], Sequence[str]],
    rng: Any,
    most: int | None = None,
    done: Callable[[str], None] = lambda name: None,
) -> tuple[list[Listed], list[str]]:
    """Every target of the ops, in the types that `types` gives for each, with the launches of its configs, of `most`
    beside the heuristic; and a line for each op that fails."""
    found: list[Listed] = []
    failures: list[str] = []
    for op in ops:
        if op.forward is not None:
            try:
                samples = calls_of(op, shapes, rng)
                found += [_listed(op, samples[t.number], t, most) for t in targets_of(op, samples, types(op))]
            except SpaceError as error:
                failures.append(f"{error}; mend the function that gives them")
            except Exception as error:  # whatever the op says of its calls: it is named, and the others are tuned
                failures.append(
                    f"{op.name}: cannot be called at what is tuned: {type(error).__name__}: {error}; mend its sizes, or --shapes"
                )
        done(op.name)
    return found, failures


def _listed(op: Op, sample: Any, target: Target, most: int | None) -> Listed:
    count = len(target.candidates) if most is None else min(most, len(target.candidates))
    configs = [target.heuristic, *[target.candidates[i * len(target.candidates) // count] for i in range(count)]]  # thinned evenly
    calls: list[tuple[Call, ...] | str] = []
    for config in configs:
        try:
            calls.append(launches(op, sample, target, config))
        except Exception as error:
            # what the rule itself cannot launch is the op's fault, not a config's
            if config is target.heuristic:
                raise
            calls.append(f"is refused: {type(error).__name__}: {error}")
    return Listed(target, configs, calls)


def launches_in(targets: Iterable[Listed]) -> list[Call]:
    """Every launch among them, once."""
    return list(dict.fromkeys(c for t in targets for calls in t.calls if not isinstance(calls, str) for c in calls))


def planned(targets: Sequence[Listed], facts: dict[Call, pruning.Facts]) -> list[Planned]:
    """The targets judged, those first whose heuristic is predicted to lose most."""
    found = [Planned(t.target, pruning.judged(t.configs, t.calls, facts), t.calls) for t in targets]
    return sorted(found, key=lambda p: (-(p.regret or 0.0), p.target.name))


def written(config: Any) -> str:
    """A config in few words: "BM=4 BN=1024 whole=True warps=8"."""
    fields = fields_of(config)
    return " ".join(f"{k}={v}" for k, v in fields.items()) if isinstance(fields, dict) else str(fields)
