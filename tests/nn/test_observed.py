"""A module that is looked at while it runs is afterwards what it was, whatever its forward does to its buffers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.utils.linting import lint
from tritensor.utils.tensorboard import SummaryWriter
from tritensor.viz import summary


class Counting(nn.Module):
    """One buffer is added to in place, one is put in the other's place, one is written through numpy."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        for name in ("added", "replaced", "written"):
            self.register_buffer(name, tt.zeros(2))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        self.added += 1
        self.replaced = self.replaced + 1
        np.from_dlpack(self.written)[:] += 1
        return self.linear(x)


def graph(model: nn.Module, folder: Path) -> None:
    with SummaryWriter(folder) as writer:
        writer.add_graph(model, tt.ones(2, 3))


@pytest.mark.parametrize(
    "look",
    [lambda m, _: summary(m, (2, 3), mode="train"), lambda m, _: lint(m, tt.ones(2, 3)), graph],
    ids=["summary", "lint", "add_graph"],
)
def test_buffers_are_those_of_before(look: Callable[[nn.Module, Path], object], tmp_path: Path) -> None:
    model = Counting()
    model.linear.eval()
    before, drawn = dict(model.named_buffers()), tt.get_rng_state().tolist()
    look(model, tmp_path)
    after = dict(model.named_buffers())
    assert {k: after[k] is v for k, v in before.items()} == dict.fromkeys(before, True)
    assert {k: v.tolist() for k, v in after.items()} == {k: [0.0, 0.0] for k in before}
    assert (model.training, model.linear.training) == (True, False)
    assert tt.get_rng_state().tolist() == drawn
