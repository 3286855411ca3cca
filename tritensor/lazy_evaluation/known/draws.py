"""Draws of a path: which of its calls has drawn what, so that gradients that draw the same again are told the numbers of another run."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.fusion.graph import BACKWARD, Call


class Draws:
    """The calls of a path that drew random numbers, by seed and offset as they were when it was written."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int], Call] = {}

    def note(self, call: Call, told: Call) -> None:
        """A call has drawn; `told` stands for it in the path."""
        if "seed" in call.attrs:
            self._calls[call.attrs["seed"], call.attrs["offset"]] = told

    def link(self, calls: Sequence[Call]) -> bool:
        """Tell calls, in order, which of the path has drawn what they draw again; False where none has, so that no later run would know."""
        from tritensor.fusion.program.templates import seed_places  # which reads kernels

        for call in calls:
            self.note(call, call)
            at = seed_places(call.op, call.part or 0, call.kernels is not None) if call.corner == BACKWARD else None
            if at is not None:
                call.drawn_by = self._calls.get((call.inputs[at[0]], call.inputs[at[1]]))
                if call.drawn_by is None:
                    return False
        return True
