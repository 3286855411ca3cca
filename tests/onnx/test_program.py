"""Products of an export: files, weights beside them, inputs of weights, names, reports, registered translations."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import tritensor as tt
from tests.onnx.agreement import compare
from tritensor import nn
from tritensor.ground.errors import ArgumentError

ROOT = Path(__file__).resolve().parent.parent.parent


def net() -> nn.Module:
    tt.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 80), nn.ReLU(), nn.Linear(80, 3))


def run(model: Any, *values: np.ndarray) -> list[np.ndarray]:
    evaluator = ReferenceEvaluator(model)
    return evaluator.run(None, dict(zip(evaluator.input_names, values, strict=False)))


def test_a_file(tmp_path: Path) -> None:
    model, x, path = net(), tt.randn(2, 4), tmp_path / "net.onnx"
    program = tt.onnx.export(model, (x,), path, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    assert os.listdir(tmp_path) == ["net.onnx"]
    loaded = onnx.load(path)
    assert loaded == program.model_proto
    assert loaded.producer_name == "tritensor"
    assert [(o.domain, o.version) for o in loaded.opset_import] == [("", 20)]
    assert [i.name for i in loaded.graph.input] == ["x"]
    assert sorted(t.name for t in loaded.graph.initializer) == sorted(model.state_dict())
    assert [n.name for n in loaded.graph.node] == ["/0/Gemm", "/1/Relu", "/2/Gemm"]
    x = tt.randn(5, 4)
    np.testing.assert_allclose(run(loaded, x.numpy())[0], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(program(x)[0].numpy(), run(loaded, x.numpy())[0])


def test_weights_in_a_file_beside(tmp_path: Path) -> None:
    model, x, path = net(), tt.randn(2, 4), tmp_path / "net.onnx"
    tt.onnx.export(model, (x,), path, external_data=True)
    assert sorted(os.listdir(tmp_path)) == ["net.onnx", "net.onnx.data"]
    bare = onnx.load(path, load_external_data=False)
    apart = {t.name for t in bare.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL}
    assert apart == {"0.weight"}, "small tensors stay in the graph"
    onnx.checker.check_model(str(path), full_check=True)
    np.testing.assert_allclose(run(onnx.load(path), x.numpy())[0], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="need a path"):
        tt.onnx.export(model, (x,), io.BytesIO(), external_data=True)


def test_more_than_a_file_may_hold_goes_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.onnx import program as programs

    monkeypatch.setattr(programs, "MAX_BYTES", 1500)
    tt.onnx.export(net(), (tt.randn(2, 4),), tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx.data").stat().st_size == 1280
    with pytest.raises(ValueError, match="fewer than 2 GB; leave external_data=False out"):
        tt.onnx.export(net(), (tt.randn(2, 4),), tmp_path / "other.onnx", external_data=False)
    assert not (tmp_path / "other.onnx").exists()


def test_a_stream() -> None:
    file = io.BytesIO()
    program = tt.onnx.export(net(), (tt.randn(2, 4),), file)
    assert onnx.load_from_string(file.getvalue()) == program.model_proto


def test_weights_as_inputs_and_left_out(tmp_path: Path) -> None:
    model, x = net(), tt.randn(2, 4)
    names = list(model.state_dict())
    kept = tt.onnx.export(model, (x,), keep_initializers_as_inputs=True).model_proto
    assert [i.name for i in kept.graph.input] == ["input", *names]
    assert len(kept.graph.initializer) == 4
    tt.onnx.export(model, (x,), tmp_path / "bare.onnx", export_params=False)
    bare = onnx.load(tmp_path / "bare.onnx")
    assert [i.name for i in bare.graph.input] == ["input", *names]
    assert not bare.graph.initializer
    got = run(bare, x.numpy(), *[v.numpy() for v in model.state_dict().values()])
    np.testing.assert_allclose(got[0], model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_constant_folding() -> None:
    model = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    folded = tt.onnx.export(model, (tt.randn(2, 4),))
    kept = tt.onnx.export(model, (tt.randn(2, 4),), do_constant_folding=False)
    assert [n.op_type for n in folded.nodes] == ["Gemm"]
    assert len(kept.nodes) > 3
    assert {n for n in model.state_dict() if "original" in n} <= set(kept.initializers)
    for program in (folded, kept):
        compare(program, model, (tt.randn(2, 4),))


def test_other_weights() -> None:
    program, other = tt.onnx.export(net(), (tt.randn(2, 4),)), net()
    for p in other.parameters():
        nn.init.normal_(p)
    program.apply_weights(other.state_dict())
    compare(program, other, (tt.randn(2, 4),))
    with pytest.raises(ValueError, match=r"0.weight is float32 \(2,\); the model has float32 \(80, 4\)"):
        program.apply_weights({"0.weight": tt.zeros(2)})


# -- inputs and outputs
def test_nests_of_inputs_and_outputs() -> None:
    def f(pair: Any, scale: float, *, more: Any = None, flag: bool = False) -> Any:
        a, b = pair
        return {"sum": (a + b["b"]) * scale, "rest": [more if flag else None, (a,)]}

    args = ([tt.ones(2), {"b": tt.ones(2)}], 3.0)
    program = tt.onnx.export(f, args, kwargs={"more": tt.zeros(1), "flag": True})
    assert program.input_names == ["pair_0", "pair_1", "more"]
    assert program.output_names == ["output_0", "output_1", "output_2"]
    assert [y.tolist() for y in program(tt.ones(2), tt.ones(2), tt.zeros(1))] == [[6, 6], [0], [1, 1]]
    assert len(tt.onnx.export(f, args).outputs) == 2, "None is no output"
    legacy = tt.onnx.export(f, (*args, {"more": tt.zeros(1), "flag": True}))
    assert legacy.input_names == program.input_names


def test_outputs_that_are_inputs_constants_or_twice_there() -> None:
    constant = tt.ones(2)
    program = tt.onnx.export(lambda x: (x, constant, x + 1, x * 1, x), (tt.zeros(2),), output_names=["a", "b", "c"])
    assert program.output_names == ["a", "b", "c", "output_3", "output_4"]
    assert [y.tolist() for y in program(tt.zeros(2))] == [[0, 0], [1, 1], [1, 1], [0, 0], [0, 0]]
    twice = tt.onnx.export(lambda x: (y := x + 1, y), (tt.zeros(2),))
    assert [y.tolist() for y in twice(tt.zeros(2))] == [[1, 1], [1, 1]]


def test_an_input_that_is_not_used_stays_an_input() -> None:
    program = tt.onnx.export(lambda x, y: x * 2, (tt.zeros(2), tt.zeros(3)))
    assert program.input_names == ["x", "y"]
    assert program(tt.ones(2), tt.ones(3))[0].tolist() == [2, 2]


def test_names_of_inputs_and_weights_are_apart() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(tt.ones(2))

        def forward(self, weight: tt.Tensor) -> tt.Tensor:
            return self.weight * weight

    program = tt.onnx.export(Scaled(), (tt.ones(2),))
    assert program.input_names == ["weight_"]
    assert list(program.initializers) == ["weight"]
    with pytest.raises(ValueError, match="input_names: 'weight' is a tensor of the module"):
        tt.onnx.export(Scaled(), (tt.ones(2),), input_names=["weight"])


def test_names_of_the_axes_of_outputs() -> None:
    axes = {"x": {0: "n"}, "y": {0: "half", 1: "of no account"}}
    program = tt.onnx.export(lambda x: x[::2], (tt.ones(4, 3),), input_names=["x"], output_names=["y"], dynamic_axes=axes)
    dims = program.model_proto.graph.output[0].type.tensor_type.shape.dim
    assert (dims[0].dim_param, dims[1].dim_value) == ("half", 3)


def test_a_lazy_module_learns_its_sizes() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    program = tt.onnx.export(model, (tt.randn(1, 3, 5, 5),), dynamic_axes={"input": {0: "n"}})
    compare(program, model.eval(), (tt.randn(3, 3, 5, 5),))


def test_a_graph_that_the_checker_refuses() -> None:
    def cast(x: tt.Tensor) -> tt.Tensor:
        return x.to(tt.float8_e4m3fn).to(tt.float32)

    with pytest.raises(
        tt.onnx.OnnxExporterError, match=r"onnx's checker refuses the graph with operators of version 18: .*Nothing was written"
    ):
        tt.onnx.export(cast, (tt.ones(2),), opset_version=18)
    compare(tt.onnx.export(cast, (tt.randn(5),)), cast, (tt.randn(5),))


def test_a_traced_tensor_prints_as_it_is() -> None:
    shown = []
    tt.onnx.export(lambda x: shown.append(repr(x + 1)) or x * 2, (tt.ones(2, dtype=tt.int64),))
    assert shown == ["tensor([2, 2])"]


def test_models_know_that_they_are_exported() -> None:
    seen = []
    tt.onnx.export(lambda x: seen.append(tt.onnx.is_in_onnx_export()) or x * 2, (tt.zeros(2),))
    assert seen == [True]
    assert not tt.onnx.is_in_onnx_export()


def test_modes() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train()
    model[0].eval()
    for mode, drops in ((tt.onnx.TrainingMode.EVAL, False), (tt.onnx.TrainingMode.TRAINING, True), (tt.onnx.TrainingMode.PRESERVE, True)):
        program = tt.onnx.export(model, (tt.ones(1, 2),), training=mode)
        assert ("Dropout" in {n.op_type for n in program.nodes}) == drops
        assert [m.training for m in model.modules()] == [True, False, True]


def test_lines_and_report(tmp_path: Path) -> None:
    program = tt.onnx.export(lambda x: x * 2, (tt.ones(2),), verbose=True, report=True, artifacts_dir=tmp_path)
    assert program.nodes[0].doc_string.startswith("tests/onnx/test_program.py:")
    (page,) = tmp_path.iterdir()
    assert "| mul |" in page.read_text()


def test_verify_finds_a_wrong_translation() -> None:
    table = {"sin": lambda g, x: g.op("Cos", x)}
    with pytest.raises(tt.onnx.OnnxExporterError, match=r"verify: output 'output' of the graph is not the model's .* differ by up to"):
        tt.onnx.export(lambda x: x.sin(), (tt.ones(2),), custom_translation_table=table, verify=True)
    tt.onnx.export(lambda x: x.sin(), (tt.ones(2),), verify=True, dynamic_axes={"x": {0: "n"}})


def test_a_registered_translation() -> None:
    from tritensor.onnx import registry

    with pytest.raises(tt.onnx.UnsupportedOperatorError, match=r"lgamma in the model itself .*no such special function"):
        tt.onnx.export(lambda x: x.lgamma(), (tt.ones(2),))
    try:

        @tt.onnx.register("lgamma")
        def stirling(g: Any, x: Any) -> Any:
            return g.op("LogGamma", x, domain="my.ops", shape=x.shape)

        program = tt.onnx.export(lambda x: x.lgamma() + 1, (tt.ones(2),), custom_opsets={"my.ops": 1})
    finally:
        registry._registered.clear()
    node = program.model_proto.graph.node[0]
    assert (node.op_type, node.domain) == ("LogGamma", "my.ops")
    assert {(o.domain, o.version) for o in program.model_proto.opset_import} == {("", 20), ("my.ops", 1)}


def test_an_op_of_a_package_is_translated_by_its_name() -> None:
    table = {tt.ops.digamma: lambda g, x: g.op("Sub", g.op("Log", x), g.op("Div", 0.5, x))}
    program = tt.onnx.export(lambda x: x.digamma(), (tt.ones(2),), custom_translation_table=table)
    assert [n.op_type for n in program.nodes] == ["Log", "Div", "Sub"]


def test_values_that_python_reads_are_told_of() -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        if x.sum() > 0:
            x = x * 2
        return x * float(x.max())

    with pytest.warns(tt.onnx.TracerWarning) as told:
        tt.onnx.export(f, (tt.ones(2),))
    assert [("a Python bool" in str(w.message), "a Python float" in str(w.message)) for w in told] == [(True, False), (False, True)]
    assert all(w.filename == __file__ for w in told)
    assert told[0].category is tt.jit.TracerWarning
    tt.onnx.export(lambda x: x * float(tt.arange(3).sum()), (tt.ones(2),))  # a number of no input


@pytest.mark.slow
def test_an_unchanged_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nfrom torch.onnx import export\n"
        "m = torch.nn.Linear(3, 2)\n"
        "export(m, (torch.randn(1, 3),), 'm.onnx', export_params=True, opset_version=17, do_constant_folding=True, input_names=['input'],\n"
        "       output_names=['output'], dynamic_axes={'input': {0: 'batch_size'}, 'output': {0: 'batch_size'}})\n"
        "torch.onnx.export(m, torch.randn(1, 3), 'n.onnx', dynamo=True, training=torch.onnx.TrainingMode.EVAL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "tritensor.run", str(script)], cwd=tmp_path, env=environment, check=True, timeout=120)
    assert {o.version for o in onnx.load(tmp_path / "m.onnx").opset_import} == {17}
    assert (tmp_path / "n.onnx").exists()


def test_importing_tritensor_imports_no_onnx() -> None:
    code = (
        "import sys, tritensor; assert not {'onnx', 'tritensor.onnx'} & set(sys.modules); tritensor.onnx; assert 'onnx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


def test_inputs_that_a_runtime_would_refuse() -> None:
    layer = tt.nn.Linear(3, 2)
    fixed = tt.onnx.export(layer, (tt.randn(2, 3),))
    for given in (tt.randn(5, 3), tt.randn(2, 3).double(), tt.randn(3)):
        with pytest.raises(
            ArgumentError, match=r"input 'input' is .*; the graph takes float32 \(2, 3\): cast it, or export with dynamic_axes"
        ):
            fixed(given)
    both = tt.onnx.export(
        lambda a, b: a + b, (tt.ones(2, 3), tt.ones(2, 3)), input_names=["a", "b"], dynamic_axes={"a": {0: "n"}, "b": {0: "n"}}
    )
    assert both(tt.ones(4, 3), tt.ones(4, 3))[0].tolist() == [[2.0] * 3] * 4
    with pytest.raises(ArgumentError, match=r"input 'b' is float32 \(1, 3\); the graph takes float32 \(n, 3\)"):
        both(tt.ones(4, 3), tt.ones(1, 3))


def test_weights_that_the_graph_has_not_are_told() -> None:
    model = tt.nn.Sequential(tt.nn.Linear(3, 2), tt.nn.BatchNorm1d(2)).eval()
    program, x = tt.onnx.export(model, (tt.ones(1, 3),)), tt.ones(1, 3)
    before = program(x)[0]
    with pytest.warns(UserWarning, match=r"the graph has no 9\.weight, which are left out"):
        program.apply_weights({"9.weight": tt.ones(2, 3)})
    with pytest.raises(ArgumentError, match=r"0\.weight is float32"):
        program.apply_weights({"0.bias": tt.zeros(2), "0.weight": tt.ones(1)})
    assert tt.equal(program(x)[0], before), "none is replaced where one does not fit"


def test_a_stream_of_text_is_refused() -> None:
    with pytest.raises(TypeError, match="StringIO is open for text; open it with 'wb'"):
        tt.onnx.export(tt.nn.Linear(3, 2), (tt.ones(1, 3),), io.StringIO())


def test_makers_take_what_they_took_before_the_first_export(tmp_path: Path) -> None:
    tt.onnx.export(net(), (tt.randn(2, 4),), tmp_path / "net.onnx")
    assert tt.empty(size=(2, 3)).shape == (2, 3)
    with pytest.raises(TypeError, match=r"^empty: no keyword 'sizes', did you mean 'size'"):
        tt.empty(sizes=(2, 3))
    with pytest.raises(TypeError, match=r"^tensor: no keyword 'dtyp', did you mean 'dtype'"):
        tt.tensor([1.0], dtyp=tt.float64)


def test_an_export_that_fails_leaves_both_files_of_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, x = tmp_path / "net.onnx", tt.randn(2, 4)
    tt.onnx.export(net(), (x,), path, external_data=True)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    other = net()
    with tt.no_grad():
        other[2].weight.fill_(3)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tt.onnx.ONNXProgram, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        tt.onnx.export(other, (x,), path, external_data=True)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
