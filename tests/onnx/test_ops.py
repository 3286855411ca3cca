"""Every op of the table: its samples exported, checked and run by the reference evaluator, or the reason why ONNX cannot express it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.onnx.sampled import disagreement, exported, mistyped
from tritensor.onnx import registry
from tritensor.ops.table import registry as ops
from tritensor.testing.questions.cases import samples

LISTED = registry.list_ops()
TRANSLATED = [name for name, how in LISTED.items() if how == "translated"]
CHANCE = ("rand", "randn", "randint", "randperm", "dropout")  # other numbers than ours, by design
LARGE = 20_000  # elements of a sample beyond which nothing new is asked

# (op, sample): why the graph may give something else
ODD = {
    ("gelu", 5): "the operator Gelu multiplies by 0 at -infinity, which is NaN; tritensor gives 0",
    ("sign", 5): "the standard does not say what Sign of NaN is; tritensor gives 0, as PyTorch",
    ("searchsorted", 5): "rows with NaN are not sorted, and a search by halves depends on its steps",
}
UINT8 = "resample of uint8 rounds in fixed point, as PyTorch does; the graph in float32: they differ by 1 at most"


def asked(name: str, dtype: str, opset: int = 20) -> list[str]:
    """What is wrong with the samples of an op in a type."""
    op, found = ops[name], []
    floats = any(d.startswith("float") for d in op.dtypes)
    dtype = dtype if dtype in op.dtypes or (floats and dtype == "float32") else op.dtypes[0]
    tolerance = 2e-2 if dtype in ("float16", "bfloat16") else 1e-4
    for k, sample in enumerate(samples(op)):
        if (name, k) in ODD or sum(getattr(x, "size", 0) for x in sample.inputs) > LARGE:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of infinities in the evaluator
            program, wanted, tensors = exported(op, sample, dtype, opset_version=opset)
            got = program.evaluate([np.array(x.numpy()) for x in tensors])
        if name == "resample" and wanted[0].dtype == np.uint8:
            got = [w if np.abs(g.astype(int) - w.astype(int)).max() <= 1 else g for g, w in zip(got, wanted, strict=True)]
        if said := disagreement(got, wanted, tolerance):
            found.append(f"{k} {sample}: {said}")
        found += [f"{k} {sample}: {m}" for m in mistyped(program)]
    return found


@pytest.mark.parametrize("name", [n for n in TRANSLATED if n not in CHANCE])
def test_samples_agree(name: str) -> None:
    assert not asked(name, "float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64", "int32", "int16", "uint8", "bool"])
def test_samples_agree_in_other_types(dtype: str) -> None:
    wrong = {n: said for n in TRANSLATED if n not in CHANCE and dtype in ops[n].dtypes and (said := asked(n, dtype))}
    wrong.pop("searchsorted" if dtype == "uint8" else "", None)  # whose samples of NaN are cast to no order at all
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 14, 15, 16, 17, 18, 19, 21, 23])
def test_samples_agree_in_other_versions(opset: int) -> None:
    wrong, old = {}, []
    for name in TRANSLATED:
        if name in CHANCE:
            continue
        try:
            said = asked(name, "float32", opset)
        except tt.onnx.UnsupportedOperatorError as error:
            old.append(name)
            wrong |= {} if f"and {opset} was asked for" in str(error) else {name: [str(error)]}
        else:
            wrong |= {name: said} if said else {}
    assert not wrong
    assert len(old) < {13: 14, 14: 12, 15: 12}.get(opset, 6), old


def test_translations_and_reasons_name_ops() -> None:
    """A new op owes ONNX nothing: until it is translated, docs/onnx.md and export say that nothing says how it is written."""
    both = [name for name in TRANSLATED if name in registry._reasons]
    assert not both, f"translated, and said to be impossible: {both}"
    assert not [name for name in registry._reasons if name not in ops], "reasons of ops that are no more"
    assert len(TRANSLATED) > 200


def test_samples_are_not_passed_over_in_silence() -> None:
    """What ODD leaves out is still there, and still differs."""
    for (name, k), why in ODD.items():
        program, wanted, tensors = exported(ops[name], samples(ops[name])[k], "float32")
        assert disagreement(program.evaluate([np.array(x.numpy()) for x in tensors]), wanted, 1e-4), f"{name} {k} agrees now: {why}"


# -- chance
@pytest.mark.parametrize(("name", "mean", "spread"), [("rand", 0.5, 12**-0.5), ("randn", 0.0, 1.0)])
def test_random_numbers_have_their_distribution(name: str, mean: float, spread: float) -> None:
    program = tt.onnx.export(lambda x: getattr(tt, name)(50, 400) + 0 * x, (tt.zeros(1),))
    y = program(tt.zeros(1))[0].numpy()
    assert y.shape == (50, 400)
    assert abs(y.mean() - mean) < 0.03
    assert abs(y.std() - spread) < 0.03


def test_random_integers_and_orders() -> None:
    program = tt.onnx.export(lambda x: (tt.randint(3, 7, (500,)) + 0 * x, tt.randperm(40) + 0 * x), (tt.zeros(1, dtype=tt.int64),))
    numbers, order = program(tt.zeros(1, dtype=tt.int64))
    assert sorted(set(numbers.tolist())) == [3, 4, 5, 6]
    assert sorted(order.tolist()) == list(range(40))
    assert order.tolist() != list(range(40))


def test_dropout_drops_in_training_mode_alone() -> None:
    model = tt.nn.Dropout(0.25)
    x = tt.ones(100, 100)
    assert np.array_equal(tt.onnx.export(model, (x,))(x)[0].numpy(), x.numpy())
    program: Any = tt.onnx.export(model, (x,), training=tt.onnx.TrainingMode.TRAINING)
    y = program(x)[0].numpy()
    assert 0.2 < (y == 0).mean() < 0.3
    assert np.allclose(y[y != 0], 1 / 0.75)
    assert model.training
