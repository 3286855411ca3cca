"""Errors of PyTorch's database are refused, in words of the house's form; and the listed mistakes are mistakes in PyTorch as well."""

from __future__ import annotations

import builtins
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.mistakes import asking
from tests.mistakes.test_mistakes import BARE, MENDS
from tests.peer.opinfo.compare import Difference
from tests.peer.opinfo.resolve import key, resolved
from tests.peer.opinfo.translate import Untranslatable
from tests.peer.opinfo.walk import _ours, _seeded, _theirs
from tritensor.ground import errors
from tritensor.nn.utils import fusion

pytestmark = pytest.mark.peer

# Operators that were asked of a number: the words are those of the op behind them.
REFLECTED = re.compile(r"__r\w+__")


def _refused() -> Iterator[Any]:
    for op in op_db:
        if op.error_inputs_func is not None and resolved(op)[0] is not None:
            yield pytest.param(op, id=key(op))


@pytest.mark.parametrize("op", list(_refused()))
def test_the_errors_of_the_database(op: Any) -> None:
    mine, _ = resolved(op)
    assert mine is not None
    _seeded()
    for i, e in enumerate(op.error_inputs("cpu")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _theirs(op.op, e.sample_input)
            continue  # refused by another form, or on another device
        except Exception:
            pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Difference) as caught:
                _ours(mine, e.sample_input)
        if isinstance(caught.value.__cause__, Untranslatable) or caught.value.kind.startswith("given"):
            continue
        text = caught.value.detail
        head, _, rest = text.partition(": ")
        assert head.split(".")[-1].rstrip("_") == op.name.split(".")[-1] or REFLECTED.fullmatch(op.name), f"{i}: {text}"
        assert MENDS.search(rest), f"{i}: does not say how to mend it: {text}"
        assert not BARE.search(text), f"{i}: Python's own words: {text}"
        assert "\n" not in text, f"{i}: {text}"


# The listed mistakes that PyTorch takes, each with the reason that we do not.
TAKEN_THERE = {
    "tt.binary_cross_entropy_with_logits(x, x, reduction=7)": "takes any other number for 0",
    "x.grad_dtype = tt.float64": "gives a tensor a gradient of another type",
    "tt.TypedStorage(3)": "memory is an object there",
    'tt.lobpcg(s, method="lanczos")': "takes any word",
    "x.to(tt.uint8) + 300": "wraps (docs/differences.md)",
    "z.to(tt.float32)": "drops the imaginary part with a warning (docs/differences.md)",
    'tt.set_float32_matmul_precision("low")': "warns",
    'tt.set_printoptions(profile="long")': "ignores a profile that it does not know",
    "F.mse_loss(x, x[:, :1])": "averages pairs that were never meant (docs/differences.md)",
    "tt.utils.data.WeightedRandomSampler([-1.0], 1)": "refuses when it draws",
    'tt.save({"model": object()}, "/dev/null")': "pickles anything",
    "nn.utils.rnn.pack_padded_sequence(x, [3, 2, 1])": "packs what is no step of the input",
    "F.smooth_l1_loss(x[:, :1], x[:, 0])": "averages pairs, as mse_loss does",
    "F.huber_loss(x[:, 0], x[:, :1])": "averages pairs, as mse_loss does",
    'F.kl_div(x[:, :1], x[:, 0], reduction="sum")': "adds pairs",
    "F.ctc_loss(x.cpu().unsqueeze(1), tt.tensor([[1, 5]]), (2,), (2,))": "reads memory behind the probabilities",
    "nn.ZeroPad2d((1, 2))": "refuses when it is called",
    'nn.KLDivLoss(reduction="avg")': "refuses when it is called",
    'tt.optim.LBFGS([w], line_search_fn="x").step(lambda: 0)': "refuses at the first step that is not the last",
    "tt.func.jvp(lambda y: y, (x,), (x.double(),))": "gives a tangent of another type",
}
# Codes whose error there is of a class that ours is not, and why ours is another.
OTHER_CLASS = {
    "tt.lobpcg(x)": "an assertion there",
    "tt.from_dlpack(5)": "something of a wrong type",
    'x["a"]': "an index that is none",
    "x[:] = [[1, 2], [3]]": "lists are taken here, ragged ones are not",
    'tt.einsum(x, "ij->i")': "PyTorch's is an accident of Python's",
    "tt.linalg.inv(s * 0)": "linalg.LinAlgError in both, of different libraries",
    "tt.linalg.cholesky(s.cpu() - 9)": "as above",
    "F.unfold(x, 2)": "a shape, which PyTorch finds by indexing it",
    'tt.manual_seed("a")': "something of a wrong type",
    'tt.autograd.grad(w.sum(), "w")': "something of a wrong type",
    "tt.autograd.gradcheck(lambda a: a * 2, (w,))": "the type is refused before anything is compared",
    "F.mse_loss(x, [1.0])": "PyTorch's is an accident of Python's",
    "nn.Parameter([1.0])": "PyTorch's is an accident of Python's",
    'nn.utils.clip_grad_norm_("a", 1.0)': "PyTorch's is an accident of Python's",
    "tt.utils.data.TensorDataset([1, 2])": "PyTorch's is an accident of Python's",
    "tt.set_num_threads(0)": "a number that is not taken",
    "nn.LSTM(3, 4, device=device)(tt.ones(5, 2, 3, device=device), tt.ones(1, 2, 4, device=device))": "PyTorch's is an accident of indexing",
    "nn.RNN(3, 4, device=device)([1.0])": "PyTorch's is an accident of Python's",
    "nn.utils.rnn.pad_packed_sequence(x)": "PyTorch's is an accident of Python's",
    "tt.autograd.grad(w.sum(), w, x.sum(), is_grads_batched=True)": "a shape, which PyTorch finds by indexing it",
    'tt.optim.NAdam([w]).load_state_dict({"state": {0: {"exp_avg": v}}, "param_groups": [{"params": [0]}]})': "PyTorch's is an accident of Python's",
    'tt.save({"model": lambda x: x}, "/dev/null")': "something of a wrong type, refused before pickle is asked",
    "tt.func.grad(lambda y: y)(2.0)": "something of a wrong type",
    "tt.func.jacfwd(lambda y: y)(1.0)": "PyTorch's is an accident of Python's",
    "tt.distributions.CatTransform([tt.distributions.ExpTransform()], 0)(x)": "an assertion there",
}
# What PyTorch has nothing of.
OURS_ALONE = re.compile(r"\btt\.(viz|Trainer|training|data|utils\.lint|optim\.Lion)\b")


def _theirs_of(code: str) -> type[Exception] | None:
    """The class that PyTorch raises for a row's code; None where it raises nothing."""
    x = torch.arange(6.0).reshape(2, 3)
    given = {
        "tt": torch, "np": np, "nn": torch.nn, "F": torch.nn.functional, "device": "cpu", "x": x, "v": torch.arange(3.0),
        "s": torch.arange(9.0).reshape(3, 3), "n": torch.arange(6).reshape(2, 3), "i": torch.tensor([0, 1]), "mask": x > 2,
        "w": torch.ones(2, 3, requires_grad=True), "z": torch.tensor([[1 + 2j] * 3] * 2), "image": torch.ones(1, 3, 8, 8),
    }  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code.replace("\\n", "\n"), "mistake.py", "exec"), given)
    except Exception as error:
        return type(error)
    return None


ON_CPU = [m.code for m in asking.mistakes() if not re.search(r"\b(there|elsewhere|cuda)\b", m.code) and not OURS_ALONE.search(m.code)]


@pytest.mark.parametrize("code", ON_CPU, ids=[c[:60] for c in ON_CPU])
def test_a_mistake_there_too(code: str) -> None:
    m = next(m for m in asking.mistakes() if m.code == code)
    said = asking.read()[m.family][code]
    name = (said.get("both") or said["cpu"])[0]
    ours = getattr(errors, name, None) or getattr(builtins, name, None) or getattr(fusion, name)
    theirs = _theirs_of(code)
    assert (theirs is None) == (code in TAKEN_THERE)
    if theirs is not None:
        assert issubclass(ours, theirs) != (code in OTHER_CLASS), f"ours is {ours.__name__}, PyTorch's {theirs.__name__}"
