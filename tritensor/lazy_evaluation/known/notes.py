"""Notes of what a public function tells while it runs: what it draws, and what makes that it cannot be told again."""

from __future__ import annotations

from typing import Any


class Notes:
    """What a function tells while it runs (see dispatch/plans/recorder.py): draws of random numbers, and what makes its calls no function of layouts."""

    def __init__(self) -> None:
        self.spoiled = ""
        self.draws: list[int] = []
        self.steps = ()  # which nobody asks for, but how many there are

    def spoil(self, reason: str) -> None:
        self.spoiled = self.spoiled or reason

    def note(self, op: Any, *_: Any) -> None:
        if not op.view:
            self.spoil(f"{op.name} ran at once")

    def note_call(self, *_: Any) -> None:
        """A function was called on tensors for its effect on later writes, which runs when the path is left."""

    def note_draw(self, blocks: int | None, place: tuple[int, int]) -> None:
        if blocks is None:
            self.spoil("it draws by a generator of its own")
        else:
            self.draws.append(blocks)

    def note_alias(self, *_: Any) -> None:
        """A tensor was made on another one's array."""

    def note_write(self, *_: Any) -> None:
        self.spoil("it writes to memory that there is")

    def borrow(self, *_: Any) -> None:
        """Saved values were borrowed."""
