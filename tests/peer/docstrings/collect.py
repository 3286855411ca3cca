"""The docstrings of PyTorch's public modules, functions, classes and methods that hold examples."""

from __future__ import annotations

import doctest
import importlib
import inspect
from typing import Any

# Below torch itself.
MODULES = [
    "Tensor",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.rnn",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.utils.prune",
    "nn.utils.stateless",
    "nn.utils.fusion",
    "nn.attention",
    "nn.parameter",
    "nn.modules.module",
    "nn.modules.lazy",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "distributions",
    "distributions.kl",
    "distributions.transforms",
    "distributions.constraints",
    "autograd",
    "autograd.functional",
    "autograd.forward_ad",
    "autograd.graph",
    "autograd.function",
    "autograd.grad_mode",
    "autograd.anomaly_mode",
    "autograd.profiler",
    "func",
    "linalg",
    "fft",
    "special",
    "signal.windows",
    "random",
    "testing",
    "amp",
    "cuda",
    "cuda.amp",
    "hub",
    "jit",
    "fx",
    "masked",
    "sparse",
    "overrides",
    "serialization",
    "profiler",
    "types",
    "functional",
    "utils",
    "utils.data",
    "utils.data.sampler",
    "utils.checkpoint",
    "utils.dlpack",
    "library",
]


def _statements(doc: str) -> list[str]:
    try:
        return [e.source for e in doctest.DocTestParser().get_examples(doc)]
    except ValueError:  # an indentation that doctest does not read
        found: list[str] = []
        for line in map(str.strip, doc.splitlines()):
            if line.startswith(">>> "):
                found.append(line[4:] + "\n")
            elif line.startswith("... ") and found:
                found[-1] += line[4:] + "\n"
        return found


def collected() -> dict[str, list[str]]:
    """{name: statements}, each docstring once, under the first name that it is found by."""
    import torch

    found: dict[str, list[str]] = {}
    seen: set[str] = set()

    def look(name: str, obj: Any) -> None:
        doc = getattr(obj, "__doc__", None)
        if isinstance(doc, str) and ">>>" in doc and doc not in seen:
            seen.add(doc)
            statements = _statements(doc)
            if statements:
                found[name] = statements

    for path in ["torch", *[f"torch.{name}" for name in MODULES]]:
        module = torch.Tensor if path == "torch.Tensor" else importlib.import_module(path)
        look(path, module)
        for name in dir(module):
            obj = None if name.startswith("__") else getattr(module, name, None)
            look(f"{path}.{name}", obj)
            if inspect.isclass(obj) and path != "torch":
                for part in vars(obj):
                    if not part.startswith("__"):
                        look(f"{path}.{name}.{part}", getattr(obj, part, None))
    return found
