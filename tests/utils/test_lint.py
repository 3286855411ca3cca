"""utils.lint: each slip is found where it is, and sound models have none."""

from __future__ import annotations

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.utils import lint


class BatchNorm1d(nn.Module):
    """Stands in for the layer: lint asks for the name."""

    def forward(self, x):
        return x


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = [nn.Linear(2, 2), nn.Linear(2, 2)]
        self.weights = {"a": nn.Parameter(tt.ones(1))}
        self.scale = tt.ones(1)
        self.shift = tt.ones(1, requires_grad=True)
        self.conv1 = nn.Linear(2, 2)
        self.bn1 = BatchNorm1d()

    def forward(self, x):
        return self.parts[0](x)


def rules(model, *inputs, **options) -> list[tuple[str, str]]:
    return [(s.rule, s.path) for s in lint(model, *inputs, **options)]


def test_a_sound_model_has_none() -> None:
    model = nn.Sequential(nn.Linear(3, 4, bias=False), BatchNorm1d(), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(4, 2))
    assert rules(model, tt.ones(2, 3), loss=nn.CrossEntropyLoss()) == []
    assert str(lint(model)) == "no slips found"


CASES = {
    "bias": (lambda: nn.Sequential(nn.Sequential(nn.Linear(2, 2), BatchNorm1d()), nn.ReLU()), [("bias-before-norm", "0.0")]),
    "softmax": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Softmax(1), nn.CrossEntropyLoss()), [("softmax-before-loss", "1")]),
    "dropout": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Dropout(0.1))), [("dropout-at-the-end", "1.1")]),
    "dropout before norm": (lambda: nn.Sequential(nn.Dropout(0.1), BatchNorm1d()), [("dropout-before-norm", "0")]),
    "linear": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), [("no-activation", "0")]),
    "twice": (lambda: nn.Sequential(nn.ReLU(), nn.ReLU()), [("twice", "1")]),
    "in place": (lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 2)), [("in-place-input", "0")]),
    "dim": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Softmax()), [("no-dim", "1")]),
    "much": (lambda: nn.Sequential(nn.Dropout(0.95), nn.Linear(2, 2)), [("much-dropout", "0")]),
}


@pytest.mark.parametrize("name", CASES)
def test_slips_of_a_sequential(name: str) -> None:
    make, expected = CASES[name]
    assert rules(make()) == expected


def test_what_is_not_registered() -> None:
    found = rules(Held())
    assert set(found) == {
        ("not-registered", "parts"), ("not-registered", "weights"), ("plain-tensor", "scale"), ("plain-tensor", "shift"), ("bias-before-norm", "conv1")
    }  # fmt: skip
    assert ("unused", "conv1.weight") in rules(Held(), tt.ones(1, 2))
    assert ("no-graph", "") in rules(nn.Sequential(nn.Linear(2, 2), Cut()), tt.ones(1, 2))
    assert ("unused", "extra.weight") in rules(Extra(), tt.ones(1, 2))


class Cut(nn.Module):
    def forward(self, x):
        return x.detach()


class Extra(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.extra = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return {"y": [self.used(x)]}


def test_values_and_sharing() -> None:
    tied = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    tied[2].weight = tied[0].weight
    assert rules(tied) == [("shared", "0.weight")]
    bad = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    with tt.no_grad():
        bad[0].weight.zero_()
        bad[2].bias[0] = float("nan")
    assert rules(bad) == [("all-zero", "0.weight"), ("not-finite", "2.bias")]
    bad.requires_grad_(False)
    assert ("all-frozen", "") in rules(bad)
    assert rules(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()), loss=nn.BCEWithLogitsLoss()) == [("softmax-before-loss", "1")]


def test_a_line_tells_all_and_others_are_refused() -> None:
    (slip,) = lint(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    assert str(slip) == "0: nothing stands between it and 1: two linear maps are one; put an activation between them [no-activation]"
    with pytest.raises(TypeError, match="lint: Tensor is not a Module"):
        lint(tt.ones(2))
