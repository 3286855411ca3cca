"""Refusals of an export, with what words, and before anything is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn

X = tt.zeros(2, 4)


def model() -> nn.Module:
    return nn.Linear(4, 3)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tt.onnx.export(3, (X,)), TypeError, "model is a int; give a Module or a function"),
        (lambda: tt.onnx.export(model(), (X,), opset_version=12), ValueError, "opset_version is 12; give one of 13 to"),
        (lambda: tt.onnx.export(model(), (X,), opset_version=99), ValueError, "opset_version is 99"),
        (lambda: tt.onnx.export(model(), (X,), opset_version="17"), ValueError, "opset_version is '17'"),
        (lambda: tt.onnx.export(model(), (X,), 3.5), TypeError, "f is a float; give a path, a stream, or None"),
        (lambda: tt.onnx.export(model(), (np.zeros((2, 4)),)), TypeError, r"args holds a numpy array \(2, 4\); wrap it"),
        (lambda: tt.onnx.export(lambda z: z, (tt.zeros(2, dtype=tt.complex64),)), TypeError, "args: z is complex64"),
        (lambda: tt.onnx.export(model(), (X,), input_names=["a", "b"]), ValueError, r"input_names: 2 names \(a, b\) for 1 tensors \(input\)"),
        (lambda: tt.onnx.export(model(), (X,), input_names="x"), TypeError, "input_names is 'x'; give a list"),
        (lambda: tt.onnx.export(lambda x, y: x + y, (X, X), input_names=["a", "a"]), ValueError, "input_names: a stands there twice"),
        (lambda: tt.onnx.export(model(), (X,), output_names=["a", "b"]), ValueError, "output_names: 2 names"),
        (lambda: tt.onnx.export(model(), (X,), output_names=["input"]), tt.onnx.OnnxExporterError, "output_names: 'input' is the name of an input"),
        (lambda: tt.onnx.export(model(), (X,), dynamic_axes={"y": {0: "n"}}), ValueError, r"dynamic_axes names 'y', which is neither an input \(input\) nor"),
        (lambda: tt.onnx.export(model(), (X,), dynamic_axes=[0]), TypeError, "dynamic_axes is a list; give a dict"),
        (lambda: tt.onnx.export(model(), (X,), dynamic_axes={"input": {2: "n"}}), ValueError, r"the dynamic axis 2 of input \(2, 4\) is none; give one of 0 to 1"),
        (lambda: tt.onnx.export(model(), (X,), dynamic_axes={"input": {0: "n"}}, dynamic_shapes={"input": {0: "n"}}), ValueError, "say the same"),
        (lambda: tt.onnx.export(model(), (X,), dynamic_shapes={"x": {0: "n"}}), ValueError, "dynamic_shapes names 'x'; the arguments are input"),
        (lambda: tt.onnx.export(model(), (X,), dynamic_shapes=3), TypeError, "dynamic_shapes is a int"),
        (lambda: tt.onnx.export(model(), (X[:0],), dynamic_axes={"input": {0: "n"}}), ValueError, "its dynamic axis 0 has no element in the sample"),
        (lambda: tt.onnx.export(lambda x, y: x, (X, X[:1]), dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}), ValueError, "the dynamic size 'n' is 2 in x and 1 in y"),
        (lambda: tt.onnx.export(model(), (X,), dynamic_axes={"input": {1: "n"}}), tt.onnx.DynamicAxisError, "the dynamic size 'n' cannot be other than 4: ShapeError"),
        (lambda: tt.onnx.export(lambda x: (x, 3), (X,)), tt.onnx.OnnxExporterError, r"returns a int \(3\) among its outputs"),
        (lambda: tt.onnx.export(lambda x: None, (X,)), tt.onnx.OnnxExporterError, "returns no tensor"),
        (lambda: tt.onnx.export(model(), (X,), training="eval"), ValueError, "training is 'eval'; give TrainingMode.EVAL"),
        (lambda: tt.onnx.export(model(), (X,), operator_export_type=tt.onnx.OperatorExportTypes.ONNX_ATEN), ValueError, "operators of ONNX alone"),
        (lambda: tt.onnx.export(lambda x: tt.linalg.inv(x @ x.T), (tt.randn(2, 4),)), tt.onnx.UnsupportedOperatorError, r"inv in the model itself \(.*test_bad_input.py:\d+\): ONNX has no factorization"),
        (lambda: tt.onnx.export(lambda x: tt.fft.rfft(x).abs(), (X,)), tt.onnx.UnsupportedOperatorError, "no complex numbers"),
        (lambda: tt.onnx.export(lambda x, g: nn.functional.grid_sample(x, g), (tt.zeros(1, 1, 2, 2), tt.zeros(1, 2, 2, 2)), opset_version=15), tt.onnx.UnsupportedOperatorError,
         r"grid_sample in the model itself .*: GridSample of 4 dimensions needs opset_version=16, and 15 was asked for"),
        (lambda: tt.onnx.export(lambda x: tt.bincount(x), (tt.arange(3),)), tt.onnx.UnsupportedOperatorError, r"bincount \(.*test_bad_input.py:\d+\) computes on the host"),
        (lambda: tt.onnx.register(3), TypeError, "the op's name is a int"),
        (lambda: tt.onnx.register("sin")(3), TypeError, "'sin' is translated by a int"),
        (lambda: tt.onnx.export(lambda x: x.sin(), (X,), custom_translation_table={"sin": lambda g, x: "y"}), tt.onnx.OnnxExporterError, "its translation returned 'y'"),
        (lambda: tt.onnx.export(lambda x: x > 0, (X,), custom_translation_table={"gt": lambda g, a, b: g.op("Sub", a, b)}), tt.onnx.OnnxExporterError, "its translation gives float32, the op bool"),
    ],
)  # fmt: skip
def test_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_every_op_without_a_translation_is_listed() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Lambda(lambda x: x.lgamma())

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return tt.linalg.cholesky(self.inner(x) @ x.T)

    with pytest.raises(tt.onnx.UnsupportedOperatorError) as told:
        tt.onnx.export(Two(), (tt.eye(3) + 2,))
    lines = str(told.value).splitlines()
    assert len(lines) == 3
    assert "lgamma in inner (" in lines[1]
    assert "cholesky in the model itself (" in lines[2]


def test_paths_are_looked_at_before_the_model_runs(tmp_path: Path) -> None:
    def never(x: tt.Tensor) -> tt.Tensor:
        raise AssertionError("the model ran")

    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file in it"):
        tt.onnx.export(never, (X,), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere; make it before"):
        tt.onnx.export(never, (X,), tmp_path / "nowhere" / "m.onnx")
    if os.getuid():
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(PermissionError, match="cannot be written"):
                tt.onnx.export(never, (X,), tmp_path / "m.onnx")
        finally:
            tmp_path.chmod(0o700)


def test_an_export_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    tt.onnx.export(model(), (X,), path)
    before = path.read_bytes()
    with pytest.raises(tt.onnx.UnsupportedOperatorError):
        tt.onnx.export(lambda x: x.lgamma(), (X,), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"onnx.export: needs onnx, which is not installed: pip install 'tritensor\[onnx\]'"):
        tt.onnx.export(model(), (X,))


def test_the_models_own_errors_are_the_models() -> None:
    with pytest.raises(tt.ShapeError, match="linear"):
        tt.onnx.export(model(), (tt.zeros(2, 5),), dynamic_axes={"input": {0: "n"}})
    with pytest.raises(TypeError, match="missing"):
        tt.onnx.export(lambda x, y: x + y, (X,))
