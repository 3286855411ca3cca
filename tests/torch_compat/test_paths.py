"""Every path that scripts import leads to the objects that stand elsewhere; what is not here says so."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import pickle
import subprocess
import sys
import types
import typing
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.torch_compat import finder, missing, recorded_names
from tritensor.torch_compat.settings import get_num_threads, set_num_threads

# path: a name in it, and where the same object stands
SAME = {
    "nn.modules": ("Module", tt.nn.Module),
    "nn.modules.activation": ("ReLU", tt.nn.ReLU),
    "nn.modules.container": ("Sequential", tt.nn.Sequential),
    "nn.modules.conv": ("Conv2d", tt.nn.Conv2d),
    "nn.modules.dropout": ("Dropout", tt.nn.Dropout),
    "nn.modules.flatten": ("Flatten", tt.nn.Flatten),
    "nn.modules.linear": ("Linear", tt.nn.Linear),
    "nn.common_types": ("Tensor", tt.Tensor),
    "nn.modules.loss": ("MSELoss", tt.nn.MSELoss),
    "nn.modules.module": ("Module", tt.nn.Module),
    "nn.modules.normalization": ("LayerNorm", tt.nn.LayerNorm),
    "nn.modules.pooling": ("MaxPool2d", tt.nn.MaxPool2d),
    "nn.modules.sparse": ("Embedding", tt.nn.Embedding),
    "nn.parameter": ("Parameter", tt.nn.Parameter),
    "nn.parallel": ("DataParallel", tt.nn.DataParallel),
    "nn.parallel.data_parallel": ("DataParallel", tt.nn.DataParallel),
    "nn.utils.clip_grad": ("clip_grad_norm_", tt.nn.utils.clip_grad_norm_),
    "nn.utils.convert_parameters": ("parameters_to_vector", tt.nn.utils.parameters_to_vector),
    "optim.optimizer": ("Optimizer", tt.optim.Optimizer),
    "optim.adam": ("Adam", tt.optim.Adam),
    "optim.adamw": ("AdamW", tt.optim.AdamW),
    "optim.sgd": ("SGD", tt.optim.SGD),
    "optim.lr_scheduler": ("StepLR", tt.optim.lr_scheduler.StepLR),
    "autograd.function": ("Function", tt.autograd.Function),
    "autograd.grad_mode": ("no_grad", tt.no_grad),
    "autograd.gradcheck": ("gradcheck", tt.autograd.gradcheck),
    "autograd.variable": ("Variable", tt.autograd.Variable),
    "utils.data.dataloader": ("DataLoader", tt.data.DataLoader),
    "utils.data.dataset": ("TensorDataset", tt.data.TensorDataset),
    "utils.data.distributed": ("DistributedSampler", tt.data.DistributedSampler),
    "utils.data.sampler": ("RandomSampler", tt.data.RandomSampler),
    "utils.dlpack": ("from_dlpack", tt.from_dlpack),
    "functional": ("einsum", tt.einsum),
    "serialization": ("load", tt.load),
    "cuda.memory": ("memory_allocated", tt.cuda.memory_allocated),
    "cuda.random": ("manual_seed_all", tt.cuda.manual_seed_all),
    "cuda.streams": ("Stream", tt.cuda.Stream),
    "testing": ("assert_close", tt.testing.assert_close),
    "types": ("Tensor", tt.Tensor),
}


@pytest.mark.parametrize("path", SAME)
def test_a_path_leads_to_the_same_object(path: str) -> None:
    name, expected = SAME[path]
    module = importlib.import_module(f"tritensor.{path}")
    assert getattr(module, name) is expected
    scope: dict[str, object] = {}
    exec(f"from tritensor.{path} import {name} as found", scope)
    assert scope["found"] is expected
    at: object = tt
    for part in path.split("."):  # as an attribute, without an import of its own
        at = getattr(at, part)
    if isinstance(at, types.ModuleType):
        assert getattr(at, name) is expected


def test_every_path_that_is_here_imports_and_holds_what_it_lists() -> None:
    count = 0
    for path in recorded_names.recorded():
        if path in ("", "Tensor") or not finder.is_here(path):
            continue
        module = importlib.import_module(f"tritensor.{path}")
        count += 1
        if isinstance(module, finder.PathModule):
            assert all(hasattr(module, n) for n in module.__all__), path
    assert count > 60


def test_a_late_import_takes_no_functions_place() -> None:

    assert callable(tt.autograd.gradcheck)
    assert isinstance(sys.modules["tritensor.autograd.gradcheck"], types.ModuleType)


def test_import_star_and_dir() -> None:
    scope: dict[str, object] = {}
    exec("from tritensor.nn.modules.linear import *", scope)
    assert scope["Linear"] is tt.nn.Linear
    assert "Linear" in dir(importlib.import_module("tritensor.nn.modules.linear"))
    assert "linear" in dir(importlib.import_module("tritensor.nn.modules"))


def test_dir_of_the_front_door_shows_public_names() -> None:
    shown = dir(tt)
    assert {"Tensor", "add", "nn", "autocast", "backends", "testing", "get_num_threads"} <= set(shown)
    assert not [n for n in shown if n.startswith("_")]
    modules = {n for n in tt.__all__ if isinstance(getattr(tt, n), types.ModuleType)}
    assert modules <= {*recorded_names.children_of(""), "data", "io", "kernels"}, (
        "a room of the house shows as a public name: tritensor/__init__.py lists them"
    )


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("tt.nn.LSTMCellular", AttributeError, "module 'tritensor.nn' has no attribute 'LSTMCellular'"),
        ("tt.sspaddmm", AttributeError, "module 'tritensor' has no attribute 'sspaddmm': torch 2.13 has it, tritensor does not"),
        ("tt.softplus", AttributeError, "module 'tritensor' has no attribute 'softplus'; the nearest here is nn.functional.softplus"),
        ("tt.catt", AttributeError, "the nearest here is tritensor.cat"),
        ("tt.nn.functional.scaled_mm", AttributeError, "torch.nn.functional 2.13 has it"),
        ("tt.ones(2).to_mkldnn", AttributeError, "'Tensor' object has no attribute 'to_mkldnn': torch.Tensor 2.13 has it, tritensor does not"),
        ("tt.nn.Parameter(tt.ones(2)).to_mkldnn", AttributeError, "'Parameter' object has no attribute 'to_mkldnn'"),
        ("tt.ones(2).nothing", AttributeError, "'Tensor' object has no attribute 'nothing'"),
        ("exec('from tritensor import sspaddmm')", ImportError, "has no attribute 'sspaddmm': torch 2.13 has it"),
        ("exec('from tritensor.nn.functional import scaled_mm')", ImportError, "torch.nn.functional 2.13 has it"),
        ("exec('import tritensor.nn.quantized')", ModuleNotFoundError, "No module named 'tritensor.nn.quantized'"),
        ("exec('import tritensor.nowhere')", ModuleNotFoundError, "No module named 'tritensor.nowhere'"),
        ("exec('import tritensor.package')", ModuleNotFoundError, "'tritensor.package': torch 2.13 has torch.package, tritensor has none of its names"),
        ("exec('from tritensor.package import PackageExporter')", ImportError, "torch 2.13 has torch.package, tritensor has none of its names"),
        ("tt.ones(2).to_sparse()", AttributeError, "torch.Tensor 2.13 has it, tritensor does not: there are no sparse tensors here: keep the matrix dense"),
        ("tt.sparse_coo_tensor(0)", NotImplementedError, "index_add(0, rows, values[:, None] * x[cols])"),
        ("tt.sparse.mm(0)", NotImplementedError, "sparse.mm: not in tritensor: there are no sparse tensors here"),
        ("tt.nested.nested_tensor(0)", NotImplementedError, "there are no nested tensors here: pad with nn.utils.rnn.pad_sequence"),
        ("exec('import tritensor.ao')", ModuleNotFoundError, "none of its names: nothing is quantized here"),
        ("tt.ones(2).to_mkldnn()", AttributeError, "drop the call"),
        ("tt.quantize_per_tensor", AttributeError, "nothing is quantized here"),
        ("tt.nn.quantized", AttributeError, "nothing is quantized here"),
        ("tt.values", AttributeError, "has no attribute 'values'; the nearest"),
        ("tt.fx.symbolic_trace(0)", NotImplementedError, "fx.symbolic_trace: not in tritensor: nothing is traced"),
        ("tt.onnx.ExportableModule", AttributeError, "torch.onnx 2.13 has it, tritensor does not"),
        ("tt.distributed.ProcessGroupGloo(0)", NotImplementedError, "distributed.ProcessGroupGloo: not in tritensor"),
        ("tt.distributed.tensor.DTensor()", NotImplementedError, "distributed.tensor.DTensor: not in tritensor"),
        ("tt.distributed.tensor.parallel.parallelize_module(0)", NotImplementedError, "layers are not cut over processes"),
        ("tt.distributed.checkpoint.DefaultSavePlanner()", NotImplementedError, "DefaultSavePlanner: not in tritensor: save and load take a state and a folder"),
        ("tt.distributed.get_rank()", ValueError, "no process group has been initialised"),
        ("tt.hub.load('a', 'b')", ValueError, "hub: no model 'b' in tritensor.models"),
        ("tt.jit.save(0)", NotImplementedError, "jit.save: not in tritensor"),
    ],
)  # fmt: skip
def test_what_is_not_here_says_so(code: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as told:
        eval(code, {"tt": tt})
    assert said in str(told.value)


def test_what_is_not_here_is_plainly_absent_to_those_who_ask() -> None:
    x = tt.ones(2)
    assert not hasattr(x, "to_mkldnn")
    assert getattr(tt, "sspaddmm", None) is None
    assert importlib.util.find_spec("tritensor.package") is None
    assert "to_mkldnn" not in dir(x)
    x_of_a_user = type("Mine", (tt.Tensor,), {"to_mkldnn": lambda self: 3})(2)
    assert x_of_a_user.to_mkldnn() == 3
    heard: list[tuple[str, str]] = []
    missing.listeners.append(lambda path, name, frame: heard.append((path, name)))
    try:
        hasattr(x, "to_mkldnn"), hasattr(tt.nn.functional, "scaled_mm"), hasattr(tt, "no_such_name")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("tritensor.package")
    finally:
        missing.listeners.pop()
    assert heard == [("Tensor", "to_mkldnn"), ("nn.functional", "scaled_mm"), ("", "package")]


def test_nothing_is_read_at_import() -> None:
    code = """
import sys, tritensor
from tritensor.torch_compat import recorded_names
assert recorded_names.recorded.cache_info().currsize == 0
late = ("tritensor.testing", "tritensor.torch_compat.modules.amp", "tritensor.torch_compat.modules.backends", "einops")
assert not [m for m in late if m in sys.modules]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_settings() -> None:
    before = get_num_threads()
    set_num_threads(1)
    assert tt.get_num_threads() == 1
    set_num_threads(before)
    assert tt.get_num_threads() == before
    with pytest.raises(ValueError, match="set_num_threads: 0 threads"):
        tt.set_num_threads(0)
    assert tt.get_num_interop_threads() == 1
    tt.use_deterministic_algorithms(True, warn_only=True)
    assert tt.are_deterministic_algorithms_enabled()
    assert tt.is_deterministic_algorithms_warn_only_enabled()
    assert tt.get_deterministic_debug_mode() == 1
    tt.set_deterministic_debug_mode("error")
    assert tt.get_deterministic_debug_mode() == 2
    tt.set_deterministic_debug_mode(0)
    assert not tt.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="debug_mode: 'loud'"):
        tt.set_deterministic_debug_mode("loud")
    assert tt.set_flush_denormal(True) is False


def test_backends() -> None:
    products = tt.backends.cuda.matmul
    assert products.allow_tf32 is False
    products.allow_tf32 = True
    assert tt.get_float32_matmul_precision() == "high"
    assert products.fp32_precision == "tf32"
    products.allow_tf32 = False
    assert tt.get_float32_matmul_precision() == "highest"
    with tt.backends.cudnn.flags(enabled=False, benchmark=True):
        assert tt.backends.cudnn.benchmark is True
    assert tt.backends.cudnn.benchmark is False
    with pytest.raises(TypeError, match="no flag 'benhmark'"), tt.backends.cudnn.flags(benhmark=True):
        pass
    assert [tt.backends.mps.is_available(), tt.backends.mkl.is_available(), tt.backends.cudnn.is_available()] == [False] * 3
    tt.backends.cuda.enable_flash_sdp(False)
    assert tt.backends.cuda.flash_sdp_enabled() is False
    tt.backends.cuda.enable_flash_sdp(True)
    with tt.backends.cuda.sdp_kernel(enable_math=False):
        assert [tt.backends.cuda.math_sdp_enabled(), tt.backends.cuda.flash_sdp_enabled()] == [False, True]
    assert tt.backends.cuda.math_sdp_enabled() is True
    with pytest.raises(AttributeError, match=r"torch.backends.cuda 2.13 has it"):
        tt.backends.cuda.preferred_blas_library  # noqa: B018


def test_names_of_the_compiled_half() -> None:
    with pytest.raises(tt._C._LinAlgError):
        tt.linalg.inv(tt.zeros(2, 2))
    assert [tt._C._jit_set_profiling_mode(True), tt._C._jit_set_profiling_mode(False)] == [False, True]
    assert tt._C._cuda_getCurrentRawStream(0) == tt.cuda.current_stream(0).cuda_stream
    with pytest.raises(AttributeError, match="_nothing"):
        tt._C._nothing  # noqa: B018


def test_collectives_that_gradients_go_through() -> None:
    from tritensor.distributed import nn

    x = tt.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="no process group"):
        nn.all_reduce(x)
    tt.distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        (nn.all_reduce(x) * nn.all_gather(x)[0]).sum().backward()
    finally:
        tt.distributed.destroy_process_group()
    assert x.grad.tolist() == [2.0] * 3


def test_what_a_tracer_would_leave_whole_is_left() -> None:
    assert tt.fx.wrap(len) is len
    assert importlib.import_module("tritensor.jit.annotations").List is typing.List  # noqa: UP006
    assert tt.hub.HASH_REGEX.search("resnet18-f37072fd.pth").group(1) == "f37072fd"
    with pytest.raises(RuntimeError, match="no function"):
        tt.fx.wrap(3)


def test_small_modules() -> None:
    assert tt.version.__version__ == tt.__version__
    assert tt.version.cuda is None
    assert (tt.distributed.is_available(), tt.distributed.is_initialized()) == (True, False)
    assert [tt.mps.is_available(), tt.xpu.device_count(), tt.cpu.is_available(), tt.cpu.current_device()] == [False, 0, True, "cpu"]
    assert tt.accelerator.is_available() is tt.cuda.is_available()
    assert tt.accelerator.device_count() == tt.cuda.device_count()
    assert tt.compiler.is_compiling() is False
    assert tt.compiler.disable(len)([1]) == 1
    from tritensor.nn.modules.utils import _ntuple, _pair, _reverse_repeat_tuple, consume_prefix_in_state_dict_if_present

    assert (_pair(3), _pair((1, 2)), _ntuple(3)("a"), _reverse_repeat_tuple((1, 2), 2)) == ((3, 3), (1, 2), ("a",), (2, 2, 1, 1))
    state = {"module.w": 1, "b": 2}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"w": 1, "b": 2}
    assert set(tt.multiprocessing.get_all_start_methods()) >= {"spawn"}
    with pytest.raises(ValueError, match="set_sharing_strategy"):
        tt.multiprocessing.set_sharing_strategy("magic")


def test_what_jit_would_compile_stays_as_it_is_and_one_notice_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.nn import compilation

    monkeypatch.setattr(compilation, "_given", set())

    def f(x: tt.Tensor) -> tt.Tensor:
        return x + 1

    with pytest.warns(DeprecationWarning, match="jit.script: nothing is compiled"):  # the category is PyTorch's
        assert tt.jit.script(f) is f
    assert tt.jit.script(f) is f
    assert tt.jit.trace(f, tt.ones(1)) is f
    assert tt.jit.ignore(f) is f
    assert tt.jit.ignore(drop=True)(f) is f
    assert tt.jit.isinstance([1], list[int])
    assert tt.jit.annotate(int, 3) == 3
    assert not tt.jit.is_scripting()
    assert tt.jit.wait(tt.jit.fork(f, tt.ones(1))).item() == 2
    with pytest.raises(RuntimeError, match="example_inputs is missing"):
        tt.jit.trace(f)
    with pytest.raises(RuntimeError, match=r"call \.eval"):
        tt.jit.freeze(tt.nn.Linear(1, 1))


def test_functions_answer_under_nn_as_well() -> None:
    assert tt.nn.cross_entropy is tt.nn.functional.cross_entropy
    assert tt.nn.interpolate is tt.nn.functional.interpolate
    with pytest.raises(AttributeError, match="no_such"):
        tt.nn.no_such  # noqa: B018


def test_data_parallel_and_distributed_sampler() -> None:
    inner = tt.nn.Linear(3, 2)
    model = tt.nn.DataParallel(inner)
    x = tt.ones(4, 3)
    assert tt.equal(model(x), inner(x))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(NotImplementedError, match="2 devices; a batch is not split"):
        tt.nn.DataParallel(inner, device_ids=[0, 1])
    parts = [list(tt.data.DistributedSampler(range(10), 4, r, shuffle=False)) for r in range(4)]
    assert parts == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]]
    sampler = tt.data.DistributedSampler(range(10), 4, 1, drop_last=True)
    assert len(sampler) == len(list(sampler)) == 2
    first = list(sampler)
    sampler.set_epoch(1)
    assert first != list(sampler) or list(sampler) != list(tt.data.DistributedSampler(range(10), 4, 0))
    orders = [list(tt.data.DistributedSampler(range(12), 3, r)) for r in range(3)]
    assert sorted(i for o in orders for i in o) == list(range(12))
    with pytest.raises(ValueError, match="rank 4 is not between 0 and num_replicas - 1 = 3"):
        tt.data.DistributedSampler(range(3), 4, 4)
    with pytest.raises(ValueError, match="no process group"):
        tt.data.DistributedSampler(range(3))


def test_pickles_and_copies_by_whichever_path() -> None:
    from tritensor.nn.modules.linear import Linear

    model = Linear(3, 2)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert type(twin) is tt.nn.Linear
        assert tt.equal(twin.weight, model.weight)
        assert isinstance(twin.weight, tt.nn.Parameter)
        assert twin.weight.requires_grad
    for thing in (
        tt.float32,
        tt.bfloat16,
        tt.device("cuda:1"),
        tt.Size([2, 3]),
        tt.channels_last,
        tt.strided,
        tt.add,
        tt.nn.functional.relu,
        tt.jit.ignore,
    ):
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert copy.deepcopy(thing) == thing


@pytest.mark.parametrize(("path", "name", "part"), [
    ("nn.modules.loss", "_Loss", nn.MSELoss()), ("nn.modules.loss", "_WeightedLoss", nn.CrossEntropyLoss()), ("nn.modules.dropout", "_DropoutNd", nn.Dropout()),
    ("nn.modules.pooling", "_MaxPoolNd", nn.MaxPool2d(2)), ("nn.modules.pooling", "_AdaptiveAvgPoolNd", nn.AdaptiveAvgPool1d(1)),
    ("nn.modules.linear", "NonDynamicallyQuantizableLinear", nn.MultiheadAttention(2, 1).out_proj),
    ("nn.modules.module", "_IncompatibleKeys", nn.ReLU().load_state_dict({})),
])  # fmt: skip
def test_private_classes_that_scripts_import(path: str, name: str, part: Any) -> None:
    assert isinstance(part, getattr(importlib.import_module("tritensor." + path), name))


def test_private_functions_that_scripts_import() -> None:
    from tritensor.nn.modules.module import _addindent
    from tritensor.nn.modules.transformer import _generate_square_subsequent_mask, _get_activation_fn, _get_clones

    assert _get_activation_fn("gelu") is nn.functional.gelu
    with pytest.raises(ValueError, match="should be relu/gelu, not tanh"):
        _get_activation_fn("tanh")
    assert repr(_get_clones(nn.ReLU(), 2)) == "ModuleList(\n  (0-1): 2 x ReLU()\n)"
    assert _generate_square_subsequent_mask(2).tolist() == [[0.0, -tt.inf], [0.0, 0.0]]
    assert _addindent("a\nb\n\nc", 2) == "a\n  b\n\n  c"


# what scripts import to ask isinstance, or to derive from: path, its name, layers that are one
@pytest.mark.parametrize(
    ("path", "name", "layers"),
    [
        ("loss", "_Loss", [tt.nn.MSELoss(), tt.nn.KLDivLoss(), tt.nn.CrossEntropyLoss()]),
        ("loss", "_WeightedLoss", [tt.nn.CrossEntropyLoss(), tt.nn.BCEWithLogitsLoss()]),
        ("dropout", "_DropoutNd", [tt.nn.Dropout(), tt.nn.Dropout2d(), tt.nn.AlphaDropout()]),
        ("pooling", "_MaxPoolNd", [tt.nn.MaxPool2d(2)]),
        ("pooling", "_AvgPoolNd", [tt.nn.AvgPool1d(2), tt.nn.AvgPool2d(2)]),
        ("pooling", "_AdaptiveAvgPoolNd", [tt.nn.AdaptiveAvgPool2d(1)]),
        ("padding", "_ConstantPadNd", [tt.nn.ZeroPad2d(1), tt.nn.ConstantPad1d(1, 0.0)]),
        ("padding", "_ReflectionPadNd", [tt.nn.ReflectionPad1d(1), tt.nn.ReflectionPad2d(1)]),
    ],
)
def test_bases_of_layers(path: str, name: str, layers: list[tt.nn.Module]) -> None:
    base = getattr(importlib.import_module(f"tritensor.nn.modules.{path}"), name)
    assert all(isinstance(layer, base) for layer in layers)
    assert not isinstance(tt.nn.Linear(1, 1), base)


def test_a_loss_of_the_users_may_have_a_reduction_of_its_own() -> None:
    from tritensor.nn.modules.loss import _WeightedLoss

    class Own(_WeightedLoss):
        pass

    assert Own(tt.ones(2), reduction="batchmean").reduction == "batchmean"
    assert list(Own(tt.ones(2)).state_dict()) == ["weight"]
    with pytest.raises(ValueError, match="reduction is 'batchmean'"):
        tt.nn.CrossEntropyLoss(reduction="batchmean")


def test_names_that_scripts_import_and_rarely_call() -> None:
    from tritensor.serialization import FILE_LIKE, MAP_LOCATION  # noqa: F401
    from tritensor.utils.cpp_extension import CUDA_HOME, BuildExtension, load  # noqa: F401
    from tritensor.utils.model_zoo import load_url

    assert load_url is tt.hub.load_state_dict_from_url
    assert CUDA_HOME is None
    with pytest.raises(NotImplementedError, match="use the program's plain form"):
        load("op", ["op.cu"])


def test_the_folder_of_what_was_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.hub import repository

    monkeypatch.delenv("TRITENSOR_HOME", raising=False)
    monkeypatch.setenv("TORCH_HOME", "/kept")
    monkeypatch.setitem(repository._chosen, "folder", None)
    assert (tt.hub._get_torch_home(), tt.hub.get_dir()) == ("/kept", "/kept/hub")
    tt.hub.set_dir("/elsewhere")
    assert tt.hub.get_dir() == "/elsewhere"
