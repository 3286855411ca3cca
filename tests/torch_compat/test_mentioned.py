"""Names that scripts of PyTorch's mention from far corners: bases that they derive from, parts that they copy, what they ask while they run."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
import tritensor.nn.functional as F


def at(path: str, name: str) -> Any:
    return getattr(importlib.import_module("tritensor" + ("." + path if path else "")), name)


# path, name: who is an instance of it
BASES = {
    ("nn.modules.loss", "_Loss"): tt.nn.MSELoss(),
    ("nn.modules.loss", "_WeightedLoss"): tt.nn.CrossEntropyLoss(),
    ("nn.modules.pooling", "_MaxPoolNd"): tt.nn.MaxPool2d(2),
    ("nn.modules.pooling", "_AvgPoolNd"): tt.nn.AvgPool2d(2),
    ("nn.modules.pooling", "_AdaptiveAvgPoolNd"): tt.nn.AdaptiveAvgPool2d(1),
    ("nn.modules.pooling", "_AdaptiveMaxPoolNd"): tt.nn.AdaptiveMaxPool2d(1),
    ("nn.modules.padding", "_ConstantPadNd"): tt.nn.ZeroPad2d(1),
    ("nn.modules.padding", "_ReflectionPadNd"): tt.nn.ReflectionPad2d(1),
    ("nn.modules.padding", "_ReplicationPadNd"): tt.nn.ReplicationPad2d(1),
    ("nn.modules.padding", "_CircularPadNd"): tt.nn.CircularPad2d(1),
    ("nn.modules.dropout", "_DropoutNd"): tt.nn.Dropout2d(),
    ("nn.modules.linear", "NonDynamicallyQuantizableLinear"): None,
}


@pytest.mark.parametrize(("path", "name"), BASES)
def test_a_base_is_that_of_its_layers(path: str, name: str) -> None:
    base, layer = at(path, name), BASES[path, name]
    assert issubclass(base, tt.nn.Module)
    assert layer is None or isinstance(layer, base)


def test_a_loss_of_ones_own_derives_from_loss() -> None:
    class Tversky(at("nn.modules.loss", "_Loss")):
        def __init__(self) -> None:
            super().__init__(None, None, "batchmean")

    assert Tversky().reduction == "batchmean"
    with pytest.raises(ValueError, match="reduction is 'batchmean'"):
        tt.nn.MSELoss(reduction="batchmean")


IMPORTED = [
    ("nn.modules.linear", "Module", tt.nn.Module),
    ("nn.modules.module", "Parameter", tt.nn.Parameter),
    ("nn.modules.conv", "F", F),
    ("nn.modules.rnn", "torch", tt),
    ("nn.modules.conv", "_pair", at("nn.modules.utils", "_pair")),
    ("optim.adam", "Optimizer", tt.optim.Optimizer),
    ("distributions.bernoulli", "constraints", tt.distributions.constraints),
    ("distributions.normal", "broadcast_all", at("distributions.utils", "broadcast_all")),
    ("optim.optimizer", "register_optimizer_step_pre_hook", tt.optim.register_optimizer_step_pre_hook),
    ("nn.parallel", "DistributedDataParallelCPU", tt.nn.parallel.DistributedDataParallel),
]


@pytest.mark.parametrize(("path", "name", "expected"), IMPORTED)
def test_what_a_module_imports_can_be_taken_from_it(path: str, name: str, expected: Any) -> None:
    scope: dict[str, Any] = {}
    exec(f"from tritensor.{path} import {name} as found", scope)
    assert scope["found"] is expected


def test_a_name_that_belongs_to_another_family_is_not_there() -> None:
    assert not hasattr(importlib.import_module("tritensor.optim.adam"), "constraints")
    assert "F" not in dir(importlib.import_module("tritensor.nn.modules.linear"))


def test_a_setting_that_an_optimizer_requires_is_asked_for() -> None:
    from tritensor.optim.optimizer import Optimizer, required

    class Mine(Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

    p = tt.nn.Parameter(tt.ones(1))
    assert Mine([p], lr=0.1).param_groups[0]["lr"] == 0.1
    assert Mine([{"params": [p], "lr": 0.2}]).param_groups[0]["lr"] == 0.2
    with pytest.raises(ValueError, match="Mine: parameter group didn't specify a value of required optimization parameter lr"):
        Mine([p])
    assert repr(required) == "<required parameter>"


def test_step_runs_unrecorded_unless_differentiable() -> None:
    from tritensor.optim.optimizer import Optimizer, _use_grad_for_differentiable

    class Mine(Optimizer):
        @_use_grad_for_differentiable
        def step(self):
            return tt.is_grad_enabled()

    p = tt.nn.Parameter(tt.ones(1))
    assert not Mine([p], {"lr": 0.1}).step()
    assert Mine([p], {"lr": 0.1, "differentiable": True}).step()


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_gradients_of_convolutions_by_themselves(axes: int) -> None:
    grads = importlib.import_module("tritensor.nn.grad")
    conv = getattr(F, f"conv{axes}d")
    x = tt.randn(2, 4, *(5,) * axes, requires_grad=True)
    w = tt.randn(6, 2, *(3,) * axes, requires_grad=True)
    y = conv(x, w, None, 2, 1, 1, 2)
    g = tt.randn_like(y)
    y.backward(g)
    assert tt.allclose(getattr(grads, f"conv{axes}d_input")(x.shape, w, g, 2, 1, 1, 2), x.grad)
    assert tt.allclose(getattr(grads, f"conv{axes}d_weight")(x, w.shape, g, 2, 1, 1, 2), w.grad)
    with tt.no_grad():
        assert not getattr(grads, f"conv{axes}d_weight")(x, w.shape, g, 2, 1, 1, 2).requires_grad


def test_projections_of_attention() -> None:
    q, k, v, w, b = tt.randn(3, 2, 4), tt.randn(3, 2, 4), tt.randn(3, 2, 4), tt.randn(12, 4), tt.randn(12)
    packed = at("nn.functional", "_in_projection_packed")
    for given in ((q, k, v), (q, q, q), (q, k, k)):
        apart = at("nn.functional", "_in_projection")(*given, *w.chunk(3), *b.chunk(3))
        assert all(tt.allclose(x, y, atol=1e-6) for x, y in zip(packed(*given, w, b), apart, strict=True))


def test_masks_and_sizes() -> None:
    mask = at("nn.functional", "_canonical_mask")
    assert mask(tt.tensor([True, False]), "a", None, "b", tt.float32).tolist() == [-float("inf"), 0]
    with pytest.warns(UserWarning, match="mismatched a and b"):
        mask(tt.tensor([True]), "a", tt.float32, "b", tt.float32)
    with pytest.raises(AssertionError, match="only bool and floating types of a"):
        mask(tt.tensor([1]), "a", None, "b", tt.float32)
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert at("nn.functional", "_get_softmax_dim")("softmax", 2, 2) == 1
    size = at("nn.functional", "_unpool_output_size")
    assert size(tt.ones(1, 1, 3), (2,), (2,), (0,), None) == [6]
    assert size(tt.ones(1, 1, 3), (2,), (2,), (0,), (1, 1, 7)) == [7]
    with pytest.raises(ValueError, match="dim 0 must be between 4 and 8"):
        size(tt.ones(1, 1, 3), (2,), (2,), (0,), (9,))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        at("nn.functional", "_verify_batch_size")((1, 3))


def test_layers_are_copied() -> None:
    first, second = at("nn.modules.transformer", "_get_clones")(tt.nn.Linear(2, 2), 2)
    assert first.weight is not second.weight
    assert tt.equal(first.weight, second.weight)
    assert at("nn.modules.transformer", "_get_activation_fn")("gelu") is F.gelu


def test_factory_kwargs() -> None:
    taken = tt.nn.factory_kwargs
    assert taken({"device": "cpu", "factory_kwargs": {"dtype": tt.float64}}) == {"device": "cpu", "dtype": tt.float64}
    with pytest.raises(TypeError, match="unexpected kwargs"):
        taken({"size": 1})
    with pytest.raises(TypeError, match="dtype specified twice"):
        taken({"dtype": tt.float32, "factory_kwargs": {"dtype": tt.float64}})


def test_reductions_by_number() -> None:
    reductions = importlib.import_module("tritensor.nn._reduction")
    assert [reductions.get_enum(n) for n in ("none", "mean", "sum")] == [0, 1, 2]
    assert reductions.legacy_get_string(False, None, False) == "sum"
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert reductions.legacy_get_enum(None, False) == 0
    with pytest.raises(ValueError, match="all is not a valid value"):
        reductions.get_enum("all")


def test_nothing_is_taken_over() -> None:
    from tritensor.overrides import handle_torch_function, has_torch_function, is_tensor_like

    assert not has_torch_function((tt.ones(1),))
    assert is_tensor_like(tt.ones(1))
    assert not is_tensor_like(1)
    with pytest.raises(TypeError, match=r"no implementation found for 'tritensor\..*relu'"):
        handle_torch_function(F.relu, (tt.ones(1),))


def test_one_function_for_two() -> None:
    from tritensor._jit_internal import BroadcastingList2, boolean_dispatch

    call = boolean_dispatch("both", 1, False, lambda x, both=True: (x, x), lambda x, both=False: x, "m", "call")
    assert (call(1), call(1, True), call(1, both=True), call.__name__) == (1, (1, 1), (1, 1), "call")
    assert BroadcastingList2[int] == list[int]


def test_the_profiler_is_the_same_by_its_older_paths() -> None:
    from tritensor.profiler import ProfilerActivity, profile, record_function
    from tritensor.profiler.profiler import profile as by_file

    assert by_file is profile
    assert tt.autograd.profiler.record_function is record_function
    assert tt.autograd.profiler.ProfilerActivity is ProfilerActivity
    assert tt.autograd.profiler_util.EventList is tt.autograd.profiler.EventList
    settings = tt._C._profiler._ExperimentalConfig(verbose=True)
    assert settings.verbose
    with profile(activities=[ProfilerActivity.CPU], experimental_config=settings):
        pass
    assert importlib.import_module("tritensor._C._profiler")._ExperimentalConfig is type(settings)


def test_what_models_ask_while_they_run() -> None:
    assert not tt.onnx.is_in_onnx_export()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=tt.jit.TracerWarning)
    with tt.jit.optimized_execution(False):
        pass
    assert tt.distributed.Backend("NCCL") == tt.distributed.Backend.NCCL == "nccl"
    assert tt.distributed.default_pg_timeout.total_seconds() == 1800
    assert tt.distributed.get_debug_level() is tt.distributed.DebugLevel.OFF
    with pytest.raises(ValueError, match="no process group"):
        at("distributed.distributed_c10d", "_get_default_group")()


def test_what_is_said_of_files_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tritensor.utils.model_zoo as model_zoo

    monkeypatch.setenv("TRITENSOR_OFFLINE", "1")
    with pytest.raises(
        RuntimeError, match=r"r18.pth could not be had: https://a/r18.pth: TRITENSOR_OFFLINE is set.*put the file at .*r18.pth by hand"
    ):
        model_zoo.load_url("https://a/r18.pth", model_dir=str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", "/cache")
    assert tt.hub.get_dir() == "/cache/hub"


def test_none_of_it_is_loaded_with_the_front_door() -> None:
    code = "import sys, tritensor; print([m for m in sys.modules if m.startswith('tritensor.torch_compat.modules')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_function_keeps_its_name_beside_the_module_of_that_name() -> None:
    import tritensor.nn.parallel.data_parallel as imported
    from tritensor.nn.parallel.data_parallel import DataParallel

    assert imported is tt.nn.parallel.data_parallel
    assert callable(imported)
    assert not hasattr(imported, "__path__")
    assert DataParallel is tt.nn.DataParallel


def test_the_oldest_class_of_storages() -> None:
    assert isinstance(tt.ones(2).storage(), tt.Storage)  # type: ignore[attr-defined]
    assert not isinstance(tt.ones(2, dtype=tt.float64).storage(), tt.Storage)  # type: ignore[attr-defined]
    assert not isinstance(tt.ones(2), tt.Storage)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="ask it for its storage"):
        tt.Storage(3)  # type: ignore[attr-defined]
