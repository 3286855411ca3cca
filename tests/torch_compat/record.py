"""Asks PyTorch, where it is installed, for its public names by module: `python -m tests.torch_compat.record` writes the two files of names in tritensor/torch_compat."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

FILE = Path(__file__).resolve().parents[2] / "tritensor/torch_compat/torch_names.json"
TENSOR_FILE = FILE.with_name("tensor_names.txt")
WHOLE = [
    "accelerator",
    "amp",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributions",
    "fft",
    "func",
    "functional",
    "futures",
    "hub",
    "library",
    "linalg",
    "masked",
    "mps",
    "multiprocessing",
    "nn",
    "optim",
    "overrides",
    "profiler",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "xpu",
]
TOP = [
    "ao",
    "distributed",
    "distributed.algorithms",
    "distributed.algorithms.join",
    "distributed.checkpoint",
    "distributed.checkpoint.default_planner",
    "distributed.checkpoint.state_dict",
    "distributed.device_mesh",
    "distributed.elastic",
    "distributed.elastic.multiprocessing",
    "distributed.elastic.multiprocessing.errors",
    "distributed.fsdp",
    "distributed.fsdp.fully_sharded_data_parallel",
    "distributed.fsdp.wrap",
    "distributed.optim",
    "distributed.tensor",
    "distributed.tensor.parallel",
    "export",
    "fx",
    "jit",
    "nested",
    "onnx",
    "package",
    "quantization",
]  # of these the names of the module itself, not what lies below
LEFT_OUT = (
    "nn.intrinsic", "nn.quantized", "nn.quantizable", "nn.qat", "nn.backends", "utils.benchmark.", "utils.data.datapipes.", "utils.hipify", "utils.bottleneck",
    "utils.jit", "utils.serialization", "utils.viz", "utils.data.backward_compatibility", "utils.data.graph", "backends.nnpack.", "multiprocessing.queue",
)  # fmt: skip
# Names that PyTorch does not list as public, or elsewhere, and public scripts import all the same.
PRIVATE = {
    "nn.modules.utils": ("_single", "_pair", "_triple", "_quadruple", "_ntuple", "_reverse_repeat_tuple"),
    "nn.modules.batchnorm": ("_BatchNorm", "_NormBase"),
    "nn.modules.conv": ("_ConvNd", "_ConvTransposeNd"),
    "nn.modules.loss": ("_Loss", "_WeightedLoss"),
    "nn.modules.dropout": ("_DropoutNd",),
    "optim.lr_scheduler": ("_LRScheduler",),
    "distributed.tensor": ("init_device_mesh", "DeviceMesh"),
    "utils.data.dataloader": ("_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"),
}
BINDINGS = ("cudnn_", "miopen_", "mkldnn_", "fbgemm_", "nnpack_", "thnn_", "hspmm", "hsmm")
OF_C = {
    "AcceleratorError", "Event", "Generator", "OutOfMemoryError", "Size", "Stream", "Tag", "device", "dtype", "finfo", "iinfo", "layout",
    "memory_format", "qscheme", "default_generator", "get_default_dtype", "get_num_interop_threads", "get_num_threads",
    "set_num_interop_threads", "set_num_threads", "set_flush_denormal", "is_grad_enabled", "is_inference_mode_enabled",
    "is_anomaly_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled", "is_autocast_cache_enabled", "get_autocast_dtype",
    "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "set_autocast_enabled", "set_autocast_dtype", "set_autocast_cache_enabled",
    "set_autocast_cpu_enabled", "set_autocast_cpu_dtype", "set_autocast_gpu_dtype", "clear_autocast_cache",
}  # fmt: skip
MARKS = ((inspect.isclass, "*"), (callable, "()"))


def modules() -> dict[str, types.ModuleType]:
    """Every public module by its path below `torch`; "" is torch itself."""
    found: dict[str, types.ModuleType] = {"": torch}
    for name in WHOLE + TOP:
        found |= dict(_below(name, deep=name in WHOLE))
    return found


def _below(path: str, deep: bool) -> Iterator[tuple[str, types.ModuleType]]:
    if path.startswith(LEFT_OUT):
        return
    try:
        module = importlib.import_module("torch." + path)
    except ImportError:  # it needs a package that is not installed
        return
    yield path, module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())) if deep else ():
        if not found.name.startswith("_"):
            yield from _below(f"{path}.{found.name}", deep)


def public(path: str, module: Any) -> list[str]:
    """A module's public names: `__all__` if it has one, else what PyTorch itself defines."""
    listed = list(getattr(module, "__all__", ()))
    if path in ("", "nn.functional") or not listed:
        listed += [n for n, v in vars(module).items() if _theirs(v) and not inspect.ismodule(v)]
    names = {n for n in listed if not n.startswith("_")} | {n for n in PRIVATE.get(path, ()) if hasattr(module, n)}
    names = {n for n in names if hasattr(module, n) and not inspect.ismodule(getattr(module, n))} - {"TYPE_CHECKING"}
    return sorted(n for n in names if path or not _machinery(n))


def _theirs(value: Any) -> bool:
    origin = getattr(value, "__module__", None)
    plain = isinstance(value, torch.dtype | torch.layout | torch.memory_format | int | float) or inspect.isbuiltin(value)
    return plain or (isinstance(origin, str) and origin.startswith("torch"))


def _machinery(name: str) -> bool:
    """Whether one of torch's own names is a part of its compiler, or of another library's binding, that came along with the C++ side."""
    if name.startswith(BINDINGS):
        return True
    if not hasattr(torch._C, name) or hasattr(torch._C._VariableFunctions, name) or name.endswith(("Tensor", "Storage")):
        return False
    return name not in OF_C and not isinstance(getattr(torch, name), torch.dtype | torch.layout | torch.memory_format | torch.qscheme)


def tensor_names() -> str:
    """The public attributes of Tensor, marked."""
    return "\n".join(marked(n, getattr(torch.Tensor, n, None)) for n in dir(torch.Tensor) if not n.startswith("_")) + "\n"


def marked(name: str, value: Any) -> str:
    return name + next((mark for is_one, mark in MARKS if is_one(value)), "")


def lines() -> dict[str, dict[str, str]]:
    """{module: {home: names}}: the home is the shortest path to the same object, "." where that is the module itself."""
    found = modules()
    homes: dict[int, list[tuple[str, str]]] = {}
    for path, module in found.items():
        for name in public(path, module):
            homes.setdefault(id(getattr(module, name)), []).append((path, name))
    rows: dict[str, dict[str, str]] = {}
    for path, module in sorted(found.items()):
        row: dict[str, list[str]] = {}
        for name in public(path, module):
            value = getattr(module, name)
            same = [p for p, n in homes[id(value)] if n == name and p in found] if inspect.isclass(value) or callable(value) else [path]
            home = min(same, key=lambda p: (p.count(".") + bool(p), len(p), p))
            row.setdefault("." if home == path else home, []).append(marked(name, value))
        rows[path] = {home: " ".join(names) for home, names in row.items()}
    return rows


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = lines()
    text = ",\n".join(f"{json.dumps(path)}: {json.dumps(row)}" for path, row in rows.items())
    FILE.write_text("{\n" + text + "\n}\n")
    TENSOR_FILE.write_text(tensor_names())
    print(
        f"{sum(len(names.split()) for row in rows.values() for names in row.values())} names in {len(rows)} modules of torch {torch.__version__}"
    )


if __name__ == "__main__":
    main()
