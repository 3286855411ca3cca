"""FlopCounterMode: the floating point operations of a stretch of a program, in all and by module, under the name of torch.utils.flop_counter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.profiler.probes.backward import backward_probe
from tritensor.profiler.probes.forward import forward_probe
from tritensor.profiler.probes.programs import programs_probe
from tritensor.profiler.recording import Options, Recording
from tritensor.profiler.records import OP, ArrayInfo
from tritensor.profiler.results.timeline import make_events
from tritensor.profiler.results.units import format_count


class FlopCounterMode:
    """`with FlopCounterMode(display=False) as counter: model(x).sum().backward()`, then `counter.get_total_flops()`.

    Counted are matrix products, convolutions, attention and recurrent layers, forward and backward: 2 operations for each multiplication and addition.
    Additions of a bias and elementwise ops are not, as in PyTorch; `profile(with_flops=True)` counts these, too.

    Args:
        mods: accepted: modules are found by themselves.
        depth: how many levels of modules the table shows.
        display: print the table when the block ends.
        custom_mapping: {name of an op: function(*shapes, **attributes) -> flops} for ops that are not counted, or otherwise. A name may be ops.aten's.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Mapping[Any, Callable[..., int]] | None = None
    ) -> None:
        for key, count in (custom_mapping or {}).items():
            if not callable(count):
                raise ArgumentError(f"FlopCounterMode: custom_mapping gives {count!r} for {key}; give a function of the shapes")
        self.depth, self.display = int(depth), bool(display)
        self._own = {_op_name(key): count for key, count in (custom_mapping or {}).items()}
        self._recording: Recording | None = None

    def __enter__(self) -> FlopCounterMode:
        self._recording = Recording(Options(inputs=True, flops=True, modules=True))
        self._recording.begin(forward_probe, backward_probe, programs_probe)  # devices are not timed: shapes are enough
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._recording is not None
        self._recording.end()
        if self.display and exc[0] is None:
            print(self.get_table(self.depth))

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Flops by module and op: {"Global": {"linear": 480, "linear backward": 960}, "Net": ..., "Net.fc1": ...}. May be asked inside the block, too."""
        found: dict[str, dict[str, int]] = {"Global": {}}
        if self._recording is None:
            return found
        own = self._custom_flops(self._recording) if self._own else {}
        for e in make_events(self._recording):
            if e.kind == "backward":
                name, flops = f"{e.forward.name} backward" if e.forward is not None else e.name, e.product_flops
            else:
                name, flops = e.name, own.get((e.thread, e.time_range.start), e.product_flops) if e.kind == "op" else 0
            if flops:
                for module in ("Global", *_enclosing_modules(e.module)):
                    counts = found.setdefault(module, {})
                    counts[name] = counts.get(name, 0) + flops
        return found

    def get_total_flops(self) -> int:
        """The flops of the whole block."""
        return sum(self.get_flop_counts()["Global"].values())

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text: modules down to `depth` levels with their ops, and each one's share of the whole."""
        depth = self.depth if depth is None else depth
        counts = self.get_flop_counts()
        total = sum(counts["Global"].values())
        rows = []
        for module, ops in counts.items():
            level = 0 if module == "Global" else 1 + module.count(".")
            if level > depth:
                continue
            for text, flops in ((module, sum(ops.values())), *[(f" - {name}", n) for name, n in ops.items()]):
                share = f"{100 * flops / total:.2f}%" if total else "0.00%"
                rows.append((" " * max(level, 0) + text, format_count(flops), share))
        heads = ("Module", "FLOP", "% Total")
        size = [max(len(r[i]) for r in (heads, *rows)) for i in range(3)]
        rule = "  ".join("-" * n for n in size)
        lines = ["  ".join([r[0].ljust(size[0]), r[1].rjust(size[1]), r[2].rjust(size[2])]) for r in (heads, *rows)]
        return "\n".join([lines[0], rule, *lines[1:]])

    def _custom_flops(self, recording: Recording) -> dict[tuple[int, float], int]:
        """The flops by the user's own functions, by thread and beginning of the call."""
        found = {}
        for kind, name, start, _, thread, _, detail in tuple(recording.records):
            if kind == OP and name in self._own:
                shapes = [tuple(x.shape) if isinstance(x, ArrayInfo) else x for x in detail.given]
                found[thread, (start - recording.started) / 1e3] = int(self._own[name](*shapes, **(detail.attrs or {})))
        return found


def _op_name(key: Any) -> str:
    """The op's name of a key of custom_mapping: a name, ops.aten.<name>, or one of its overloads."""
    if isinstance(key, str):
        return key
    return str(key).removeprefix("aten.").split(".")[0]


def _enclosing_modules(module: str) -> list[str]:
    """A module's path and those of all that hold it: Net, Net.block, Net.block.fc."""
    parts = module.split(".") if module else []
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
