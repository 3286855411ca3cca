"""Threads that meet at one tensor: their gradients add up, and they share one write counter."""

from __future__ import annotations

import time

import pytest

import tritensor as tt
from tests.threads.together import together
from tritensor.autograd import accumulate, node
from tritensor.tensor import core


def test_gradients_of_one_leaf_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tt.zeros(4, dtype=tt.float64, requires_grad=True)
    plain = accumulate.copy

    def slow(a: object) -> object:
        time.sleep(0.02)  # long enough for the others to find no .grad either
        return plain(a)

    monkeypatch.setattr(accumulate, "copy", slow)
    together(*[lambda: (x + 1).sum().backward() for _ in range(4)])
    assert x.grad.tolist() == [4.0] * 4


def test_views_taken_first_by_two_threads_share_the_write_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = node.Version.__init__

    def slow(self: node.Version) -> None:
        time.sleep(0.02)
        plain(self)

    monkeypatch.setattr(node.Version, "__init__", slow)
    base = tt.zeros(4, dtype=tt.float64)
    views: list[tt.Tensor] = []
    together(*[lambda: views.append(base[:2]) for _ in range(3)])
    base.add_(1)
    assert [v._version for v in (*views, base)] == [1] * 4


def test_views_taken_first_by_two_threads_are_all_known_to_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = core.Extra.__init__

    def slow(self: core.Extra) -> None:
        time.sleep(0.02)
        plain(self)

    monkeypatch.setattr(core.Extra, "__init__", slow)
    base = tt.zeros(4, dtype=tt.float64)
    views: list[tt.Tensor] = []
    together(*[lambda: views.append(base[:2]) for _ in range(3)])
    base.mul_(tt.ones(4, dtype=tt.float64, requires_grad=True))
    assert [v.requires_grad for v in views] == [True] * 3
