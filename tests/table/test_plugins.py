"""Ops of other packages: found through the entry-point group "tritensor.ops" at the first name that the table does not know."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ops.table import Ops, registry


class Entry:
    """What an installed package's entry point looks like."""

    name, value = "doubles", "plugin_ops.doubles"

    def __init__(self) -> None:
        self.loads = 0

    def load(self) -> None:
        self.loads += 1

        def plugin_double(x: np.ndarray) -> np.ndarray:
            return x * 2

        tt.op(
            "plugin_double", plugin_double, shape=lambda x: tt.Spec(x.shape, x.dtype), forward=lambda x: x, rule=lambda g: g * 2,
            backward=lambda g: g, samples=lambda rng: [tt.Sample(rng.standard_normal(3))],
        )  # fmt: skip


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Entry()
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [made] if group == "tritensor.ops" else [])
    monkeypatch.setattr(Ops, "plugins_read", False)
    yield made
    registry.pop("plugin_double", None)
    tt.ops.__dict__.pop("plugin_double", None)


def test_an_unknown_name_reads_the_entry_points_once(entry: Entry) -> None:
    x = tt.ones(3, requires_grad=True)
    tt.ops.plugin_double(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(AttributeError, match="no op is called 'plugin_doubel'; did you mean 'plugin_double'"):
        tt.ops.plugin_doubel  # noqa: B018
    assert entry.loads == 1
