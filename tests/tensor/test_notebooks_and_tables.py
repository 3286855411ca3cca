"""Tensors and modules in pandas' tables, in notebooks' cells, in copies and pickles: as they are, without `.numpy()`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter

import tritensor as tt
from tritensor import nn


def test_pandas_takes_tensors() -> None:
    x, n = tt.tensor([1.5, 2.5, 3.5]), tt.tensor([3, 1, 2])
    frame = pd.DataFrame({"x": x, "n": n, "even": n % 2 == 0})
    assert frame.dtypes.astype(str).tolist() == ["float32", "int64", "bool"]
    frame["twice"] = x * 2
    assert frame.sort_values("n")["twice"].tolist() == [5.0, 7.0, 3.0]
    assert pd.Series(x, index=["a", "b", "c"])["b"] == 2.5
    assert pd.DataFrame(tt.ones(2, 3), columns=list("abc")).sum().tolist() == [2.0, 2.0, 2.0]
    assert frame[np.asarray(n > 1)]["x"].tolist() == [1.5, 3.5]
    assert pd.concat([frame, frame]).groupby("n")["x"].mean().tolist() == [2.5, 3.5, 1.5]
    assert tt.tensor(frame["x"].values).tolist() == tt.as_tensor(frame["x"].to_numpy()).tolist() == x.tolist()
    assert tt.tensor(frame[["x", "twice"]].to_numpy()).shape == (3, 2)


class Shown:
    """What a cell shows of a value, kind by kind, by IPython's own formatter."""

    def __init__(self, value: Any) -> None:
        self.kinds, _ = DisplayFormatter().format(value)


@pytest.mark.parametrize(
    "value",
    [tt.ones(2), tt.ones(2, requires_grad=True), nn.Linear(2, 3), nn.Parameter(tt.ones(1)), tt.Size([2]), tt.float32, tt.device("cpu")],
)
def test_a_cell_shows_the_text(value: Any) -> None:
    assert Shown(value).kinds == {"text/plain": repr(value)}


def test_a_cell_shows_many_tensors() -> None:
    held = {"w": tt.zeros(2), "b": [tt.ones(1)]}
    text = Shown(held).kinds["text/plain"]
    assert "tensor([0., 0.])" in text
    assert "tensor([1.])" in text
    assert Shown(nn.Sequential(nn.Linear(1, 1)).state_dict()).kinds.keys() == {"text/plain"}


def both(value: Any) -> list[Any]:
    return [copy.deepcopy(value), *(pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, 6))]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("kind", [tt.float32, tt.bfloat16, tt.int8, tt.bool, tt.complex64])
def test_copies_hold_their_own_values(kind: Any, device: str) -> None:
    if kind is tt.complex64 and device == "cuda":
        kind = tt.float64
    x = tt.tensor([[0, 1], [2, 3]]).to(kind).to(device)[:, 1:]  # a view
    for y in both(x):
        assert (y.dtype, y.device, y.shape) == (x.dtype, x.device, x.shape)
        assert tt.equal(y, x)
        assert y.data_ptr() != x.data_ptr()
        y.zero_()
        assert x.cpu().to(tt.complex64).abs().sum() != 0


def test_copies_of_models_and_optimizers_go_on_alike() -> None:
    tt.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = tt.optim.Adam(net.parameters(), lr=0.1)
    x = tt.rand(6, 3)

    def step(model: Any, by: Any) -> float:
        by.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        by.step()
        return float(loss)

    step(net, optimizer)
    pairs = [copy.deepcopy((net, optimizer)), pickle.loads(pickle.dumps((net, optimizer)))]  # together: the copy steps the copy
    want = [step(net, optimizer) for _ in range(3)]
    for model, by in pairs:
        assert [step(model, by) for _ in range(3)] == want
        assert model[0].weight is by.param_groups[0]["params"][0]
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(net(x))
