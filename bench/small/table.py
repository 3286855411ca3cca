"""A table of a comparison: ours first, torch and the ratio beside it, other trees, then numpy and jax."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from bench.small.sides import FLOOR, JAX, OURS, TORCH, Found, Library


class Table:
    """A line for each thing that is timed, then the means; printed as they come. `unit` and `scale` are of its times."""

    def __init__(self, what: str, of: Sequence[Library], unit: str = "us", scale: float = 1e6) -> None:
        self.what, self.unit, self.scale = what, unit, scale
        names = [library.name for library in of]
        self.ours = [library.name for library in of if library.path]
        self.peer, self.arrays = TORCH in names, [n for n in (FLOOR, JAX) if n in names]
        self.found: dict[str, Found] = {}
        head = f"\n{what:<52}{OURS:>13}" + f"{TORCH:>13}{'':>16}" * self.peer
        head += "".join(f"{name:>16}" + f"{'':>16}" * self.peer for name in self.ours[1:])
        print(head + "".join(f"{name:>13}" for name in self.arrays), flush=True)

    def add(self, found: Mapping[str, Found]) -> None:
        """Print a line for each label, and one for each side that failed. The line of ours and torch's is that of bench/cpu/timing.py."""
        self.found |= found
        for label, (seconds, ratios, failed) in found.items():
            told = {name: f"{took * self.scale:.2f} {self.unit}" for name, took in seconds.items()}
            beside = {name: f"{ratio:.2f} x torch" for name, ratio in ratios.items()}
            text = f"{label:<52}{told.get(OURS, '-'):>13}" + f"{told.get(TORCH, '-'):>13}{beside.get(OURS, ''):>16}" * self.peer
            text += "".join(f"{told.get(name, '-'):>16}" + f"{beside.get(name, ''):>16}" * self.peer for name in self.ours[1:])
            print(text + "".join(f"{told.get(name, ''):>13}" for name in self.arrays), flush=True)
            for name, error in failed.items():
                print(f"    {name} FAILED {error}", flush=True)

    def end(self, worse: Sequence[float], named: float | None = None) -> None:
        """The geometric mean of each of ours beside torch, how many are above the bounds, and those above `named` by name; other trees beside ours."""
        what = f"geometric mean of the {self.what}"
        for name in self.ours:
            ratios = {label: found.ratios[name] for label, found in self.found.items() if name in found.ratios}
            if ratios:
                print(f"{what if name == OURS else f'{what}, {name}':<52}{statistics.geometric_mean(ratios.values()):>34.2f} x torch")
                print(f"    of {len(ratios)}: {', '.join(f'{sum(r > bound for r in ratios.values())} above {bound:g}' for bound in worse)}")
            for label, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
                if named is not None and ratio > named:
                    print(f"    {ratio:.2f}  {label}")
        for name in self.ours[1:]:
            over = [f.seconds[name] / f.seconds[OURS] for f in self.found.values() if {name, OURS} <= f.seconds.keys()]
            if over:
                print(f"{f'{what}, {name}':<52}{statistics.geometric_mean(over):>34.3f} x {OURS}")
