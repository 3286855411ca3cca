"""utils.lint: each slip is found where it is, and sound models have none."""

from __future__ import annotations

import contextlib
import io
import runpy
from typing import Any

import pytest

import tritensor as tt
from tests.familiar.settings import settings_put_back
from tests.programs.record import PROGRAMS, name
from tritensor import nn
from tritensor.tools.run_script import opened
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
    "dropout": (lambda: nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))), [("dropout-at-the-end", "1.1")]),
    "dropout before norm": (lambda: nn.Sequential(nn.Dropout(0.1), BatchNorm1d()), [("dropout-before-norm", "0")]),
    "linear": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), [("no-activation", "0")]),
    "twice": (lambda: nn.Sequential(nn.ReLU(), nn.ReLU()), [("twice", "1")]),
    "in place": (lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 2)), [("in-place-input", "0")]),
    "dim": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Softmax()), [("no-dim", "1")]),
    "relu before the loss": (lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.CrossEntropyLoss()), [("relu-before-loss", "1")]),
    "one class": (lambda: nn.Sequential(nn.Linear(2, 1), nn.CrossEntropyLoss()), [("one-class", "0")]),
    "over the batch": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=0)), [("softmax-over-batch", "1")]),
    "flattened batch": (lambda: nn.Sequential(nn.Flatten(0), nn.Linear(2, 2)), [("flatten-batch", "0")]),
    "features": (lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2)), [("sizes", "3")]),
    "channels": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU()), [("sizes", "1")]),
    "flatten": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Linear(8, 2)), [("no-flatten", "3")]),
    "factors": (lambda: nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 8)), []),
    "frozen norm": (lambda: nn.Sequential(nn.BatchNorm1d(2).requires_grad_(False), nn.Linear(2, 2)), [("frozen-norm", "0")]),
    "frozen norm in eval mode": (lambda: nn.Sequential(nn.BatchNorm1d(2).requires_grad_(False).eval(), nn.Linear(2, 2)), []),
    "dropout in eval mode": (lambda: nn.Sequential(nn.Dropout(0.1).eval(), nn.Linear(2, 2)), [("left-in-eval", "0")]),
    "types": (lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2).double()), [("mixed-types", "2.weight")]),
    "halves": (lambda: nn.Sequential(nn.Linear(2, 2).bfloat16(), nn.LayerNorm(2)), []),
    "devices": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 3).to("cuda"), nn.LayerNorm(3)),
        [("mixed-devices", "2.weight")],
    ),
    "twice the same": (lambda: nn.Sequential(*[nn.Linear(2, 2), nn.ReLU()] * 2), [("shared", "0.weight"), ("shared", "0.bias")]),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(2), nn.ReLU(), nn.LazyLinear(2)), []),
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
    bad = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    with tt.no_grad():
        bad[0].weight.zero_()  # alone it learns: what comes back differs from unit to unit
        assert rules(bad) == []
        bad[2].weight.zero_()
        bad[4].bias[0] = float("nan")
        assert rules(bad) == [("all-zero", "2.weight"), ("not-finite", "4.bias")]
        bad[2].weight.fill_(0.5)
    assert rules(bad) == [("all-alike", "2.weight"), ("not-finite", "4.bias")]
    bad.requires_grad_(False)
    assert ("all-frozen", "") in rules(bad, loss=nn.MSELoss())
    assert ("all-frozen", "") not in rules(bad), "it may be one that others learn from"
    assert rules(nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()), loss=nn.BCEWithLogitsLoss()) == [("softmax-before-loss", "1")]


def test_a_line_tells_all_and_others_are_refused() -> None:
    (slip,) = lint(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    assert str(slip) == "0: nothing stands between it and 1: two linear maps are one; put an activation between them [no-activation]"
    with pytest.raises(TypeError, match="lint: Tensor is not a Module"):
        lint(tt.ones(2))


def test_containers_in_containers_and_buffers() -> None:
    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = {"a": [nn.Linear(2, 2)], "b": [(nn.Linear(2, 2), 3)]}
            self.register_buffer("scale", tt.ones(2, requires_grad=True))

    assert rules(Nested()) == [("not-registered", "blocks"), ("buffer-with-gradient", "scale")]


def test_a_weight_that_is_tied_to_an_embedding_is_meant() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
            self.head.weight = self.words.weight

    assert rules(Tied()) == []


def test_an_optimizer() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    assert rules(model, optimizer=tt.optim.SGD(model.parameters(), lr=0.1)) == []
    assert rules(model, optimizer=tt.optim.SGD(model[0].parameters(), lr=0.1)) == [
        ("not-optimized", "2.weight"),
        ("not-optimized", "2.bias"),
    ]
    model[2].requires_grad_(False)
    assert rules(model.eval(), optimizer=tt.optim.SGD(model[0].parameters(), lr=0.0)) == [("rate-of-0", ""), ("not-training", "")]
    stranger = tt.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    assert ("not-of-the-model", "") in rules(model.train(), optimizer=stranger)
    with pytest.raises(TypeError, match="lint: optimizer is int"):
        lint(model, optimizer=3)


class Block(nn.Module):
    """What a Sequential does not show: who takes what is written in forward."""

    def __init__(self, inplace: bool = False, head: nn.Module | None = None) -> None:
        super().__init__()
        self.first, self.scaled, self.act = nn.Linear(2, 2), nn.BatchNorm1d(2), nn.ReLU(inplace=inplace)
        self.side, self.head = nn.Linear(2, 2), head or nn.Identity()

    def forward(self, x):
        h = self.scaled(self.first(x))
        return self.head(self.act(h) + self.side(x))


class Shares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side, self.act = nn.Identity(), nn.ReLU(inplace=True)
        self.look = nn.Tanh()

    def forward(self, x):
        h = x * 1
        return self.look(h) + self.act(h)


class Drops(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return nn.functional.dropout(self.inner(x), 0.5)


class Ends(nn.Module):
    """Its last step is a function."""

    def __init__(self, last: Any, bare: bool = False) -> None:
        super().__init__()
        self.last = last
        if bare:
            self.weight = nn.Parameter(tt.randn(2, 2))
        else:
            self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.last(self.inner(x) if "inner" in self._modules else x @ self.weight)


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize(
    ("last", "loss", "rule"),
    [
        (lambda x: nn.functional.softmax(x, -1), nn.CrossEntropyLoss(), "softmax-before-loss"),
        (lambda x: x.log_softmax(-1), nn.functional.cross_entropy, "softmax-before-loss"),
        (tt.sigmoid, nn.BCEWithLogitsLoss(), "softmax-before-loss"),
        (lambda x: x.softmax(-1), nn.NLLLoss(), "softmax-before-loss"),
        (nn.functional.relu, nn.CrossEntropyLoss(), "relu-before-loss"),
    ],
)
def test_a_function_before_the_loss_is_what_its_layer_is(last: Any, loss: Any, rule: str, bare: bool) -> None:
    assert (rule, "") in rules(Ends(last, bare), tt.randn(4, 2), loss=loss)
    assert rules(Ends(last, bare), tt.randn(4, 2), loss=nn.MSELoss()) == []
    assert rules(Ends(lambda x: x * 2, bare), tt.randn(4, 2), loss=nn.CrossEntropyLoss()) == []


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_the_flow_of_a_sample_shows() -> None:
    x = tt.randn(4, 2)
    assert rules(Block(), x) == [("bias-before-norm", "first")]
    assert ("in-place-residual", "act") in rules(Shares(), x)
    assert ("in-place-residual", "act") not in rules(Block(inplace=True), x)
    assert rules(Drops(), x) == [("dropout-in-eval", "")]
    assert rules(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Linear(2, 2)), x) == []
    assert ("softmax-before-loss", "head") in rules(Block(head=nn.Softmax(1)), x, loss=nn.functional.cross_entropy)
    assert ("not-probabilities", "") in rules(nn.Linear(2, 2), x * 9, loss=nn.BCELoss())
    assert ("not-log-probabilities", "") in rules(nn.Linear(2, 2), x * 9, loss=nn.NLLLoss())
    bad = Block()
    with tt.no_grad():
        bad.side.weight.fill_(float("inf"))
    assert ("not-finite", "side") in rules(bad, x)


def test_a_sample_leaves_the_model_as_it_was() -> None:
    model = Block()
    model.side.eval()
    before = {k: v.tolist() for k, v in model.state_dict().items()}
    lint(model, tt.randn(4, 2))
    assert {k: v.tolist() for k, v in model.state_dict().items()} == before
    assert [m.training for m in model.modules()] == [True, True, True, True, False, True]
    assert all(p.grad is None for p in model.parameters())


SAMPLES = {
    "alexnet": (1, 3, 64, 64), "lenet": (1, 1, 32, 32), "resnet18": (2, 3, 32, 32), "resnet50": (2, 3, 32, 32), "unet": (1, 3, 32, 32), "vgg11": (1, 3, 32, 32),
}  # fmt: skip


LARGE = ("alexnet", "vgg11")  # whose weights take seconds to be drawn


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in SAMPLES])
def test_networks_that_everyone_builds_have_none(name: str) -> None:
    model = getattr(tt.models, name)()
    optimizer = tt.optim.SGD(model.parameters(), lr=0.1)
    assert str(lint(model, tt.randn(*SAMPLES[name]), loss=nn.CrossEntropyLoss(), optimizer=optimizer)) == "no slips found"


def test_transformers_have_none() -> None:
    gpt = tt.models.GPT2(tt.models.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=50))
    assert str(lint(gpt, tt.tensor([[1, 2, 3]]))) == "no slips found"
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    assert str(lint(nn.TransformerEncoder(layer, 2), tt.randn(2, 5, 16))) == "no slips found"


@pytest.mark.slow
def test_published_weights_with_a_bias_before_a_norm_are_told() -> None:
    assert {s.rule for s in lint(tt.models.vgg11_bn())} == {"bias-before-norm"}


# What lint says of whole programs that learn as they should: true, if harmless, or what a program does on purpose to show it.
SAID = {
    "language/ctc_speech": {"bias-before-norm"}, "training/deep_fm": {"bias-before-norm"}, "training/distillation": {"bias-before-norm"},
    "training/ema_and_swa": {"bias-before-norm"}, "training/accumulate_and_checkpoint": {"dropout-at-the-end"}, "science/informer_series": {"plain-tensor"},
    "training/module_tricks": {"shared", "bias-before-norm", "no-activation", "no-flatten", "not-registered", "plain-tensor"},
    "surroundings/amp_resume": {"bias-before-norm"}, "surroundings/checkpoints": {"no-activation", "shared", "bias-before-norm"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_programs_that_learn_have_few(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[nn.Module] = []
    begin = nn.Module.__init__

    def note(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(nn.Module, "__init__", note)
    found = {}
    for program in PROGRAMS:
        made.clear()
        with settings_put_back(), opened(), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(program), run_name="__main__")
        inner = {id(c) for m in made for c in m.modules() if c is not m}
        found[name(program)] = {s.rule for m in made if id(m) not in inner for s in lint(m)}
    assert {k: v for k, v in found.items() if v} == SAID
