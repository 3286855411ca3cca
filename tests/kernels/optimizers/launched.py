"""Names of the optimizers' kernels that are launched while a test runs."""

from __future__ import annotations

from typing import Any

import pytest

from tritensor.cuda.runtime import active
from tritensor.ops import replay


def note_launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows by the name of each such kernel from now on, by recordings too."""
    seen: list[str] = []
    runtime = active.runtime()
    before = runtime.launch

    def noted(call: Any) -> None:
        if call.kernel.fn.__module__.startswith("tritensor.kernels.optimizers."):
            seen.append(call.kernel.__name__)
        before(call)

    monkeypatch.setattr(runtime, "launch", noted)
    replay.forget()  # a recording knows how many addresses a launch takes, which tests set
    return seen
