"""Steps that all ranks take together: an error on one rank is raised on all, so that none is left waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tritensor.distributed.objects import all_gather_object
from tritensor.distributed.process_group import ProcessGroup, is_initialized, require_group
from tritensor.ground.errors import CheckpointError

_Result = TypeVar("_Result")


class CheckpointRanks:
    """The ranks that write or read one checkpoint: a group's, or this process alone."""

    def __init__(self, name: str, group: Any, alone: bool) -> None:
        self.name = name
        self.group: ProcessGroup | None = None if alone or (group is None and not is_initialized()) else require_group(name, group)
        self.rank, self.size = (0, 1) if self.group is None else (self.group.rank(), self.group.size())

    def step(self, do: Callable[[], _Result]) -> list[_Result]:
        """The results of `do` of all ranks, on each of them. Raises on all ranks where it raises on one: there its error, elsewhere CheckpointError."""
        error: Exception | None = None
        result: Any = None
        try:
            result = do()
        except Exception as raised:
            # Kept, not raised: the others wait in all_gather_object below, and would wait until their timeout.
            error = raised
        if self.group is None:
            if error is not None:
                raise error
            return [result]
        told: list[Any] = [None] * self.size
        all_gather_object(told, (None if error is None else f"{type(error).__name__}: {error}", result), self.group)
        if error is not None:
            raise error
        # Own errors first, with their own type and traceback; another rank's are only known as text.
        for rank, (said, _) in enumerate(told):
            if said is not None:
                raise CheckpointError(f"{self.name}: rank {rank} failed: {said}")
        return [result for _, result in told]
