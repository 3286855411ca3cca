"""The docstrings of PyTorch's public modules, functions, classes and methods that hold examples."""

from __future__ import annotations

import doctest
import importlib
import inspect
from typing import Any

MODULES = [
    "torch",
    "torch.Tensor",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.prune",
    "torch.nn.utils.stateless",
    "torch.nn.utils.fusion",
    "torch.nn.attention",
    "torch.nn.parameter",
    "torch.nn.modules.module",
    "torch.nn.modules.lazy",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.distributions",
    "torch.distributions.kl",
    "torch.distributions.transforms",
    "torch.distributions.constraints",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.autograd.forward_ad",
    "torch.autograd.graph",
    "torch.autograd.function",
    "torch.autograd.grad_mode",
    "torch.autograd.anomaly_mode",
    "torch.autograd.profiler",
    "torch.func",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.signal.windows",
    "torch.random",
    "torch.testing",
    "torch.amp",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.hub",
    "torch.jit",
    "torch.fx",
    "torch.masked",
    "torch.sparse",
    "torch.overrides",
    "torch.serialization",
    "torch.profiler",
    "torch.types",
    "torch.functional",
    "torch.utils",
    "torch.utils.data",
    "torch.utils.data.sampler",
    "torch.utils.checkpoint",
    "torch.utils.dlpack",
    "torch.library",
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

    for path in MODULES:
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
