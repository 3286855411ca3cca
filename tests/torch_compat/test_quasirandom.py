"""torch.quasirandom: points of the Sobol sequence."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tritensor as tt
from tritensor.torch_compat.modules import quasirandom
from tritensor.torch_compat.modules.quasirandom import SobolEngine


@pytest.fixture(autouse=True)
def directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three dimensions, by Joe and Kuo: scipy need not be here."""
    given = np.zeros((3, 18), np.int64)
    given[:, 0], given[2, 1] = 1, 3
    monkeypatch.setattr(quasirandom, "_joe_kuo", lambda: (np.array([1, 3, 7]), given))


def test_the_first_points() -> None:
    engine = SobolEngine(3)
    assert engine.draw(4).tolist() == [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.draw().tolist() == [[0.375, 0.375, 0.625]]
    engine.reset().fast_forward(4)
    out = tt.empty(0)
    assert engine.draw(out=out) is out
    assert out.tolist() == [[0.375, 0.375, 0.625]]
    assert engine.num_generated == 5
    assert repr(SobolEngine(2, scramble=True, seed=3)) == "SobolEngine(dimension=2, scramble=True, seed=3)"


@pytest.mark.parametrize("scramble", [False, True])
def test_each_stretch_gets_one_point(scramble: bool) -> None:
    points = SobolEngine(3, scramble, seed=1).draw_base2(6, dtype=tt.float64)
    assert points.dtype is tt.float64
    for column in points.unbind(1):
        assert sorted((column * 64).long().tolist()) == list(range(64))
    assert tt.equal(SobolEngine(3, scramble, seed=1).draw(64), points.float())


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="dimension is 0; Supported range"):
        SobolEngine(0)
    engine = SobolEngine(1)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"3 points were drawn, with 2\*\*1 more they are 5"):
        engine.draw_base2(1)
    monkeypatch.undo()
    quasirandom._joe_kuo.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        SobolEngine(2)
