"""PyTorch's module tree, as thin modules over other rooms, and the messages about names that are not here."""

from __future__ import annotations

import sys

from tritensor.torch_compat.einops_backend import register
from tritensor.torch_compat.finder import FINDER, LateImportFinder, PathModule, module_getattr
from tritensor.torch_compat.missing import mark_methods

# Modules of our own that PyTorch has under the same path: what one of them has not is looked up among PyTorch's names.
SHARED = [
    "autograd",
    "autograd.function",
    "cuda",
    "cuda.memory",
    "cuda.nvtx",
    "cuda.random",
    "cuda.streams",
    "fft",
    "linalg",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.parallel",
    "nn.parameter",
    "nn.utils",
    "nn.utils.clip_grad",
    "nn.utils.convert_parameters",
    "nn.utils.parametrizations",
    "nn.utils.rnn",
    "optim",
    "optim.adam",
    "optim.adamw",
    "optim.lr_scheduler",
    "optim.optimizer",
    "optim.sgd",
    "onnx",
    "random",
    "special",
    "testing",
    "utils",
    "utils.data",
    "utils.checkpoint",
    "utils.tensorboard",
    "utils.tensorboard.summary",
    "distributed",
    "distributed.algorithms",
    "distributed.algorithms.join",
    "distributed.checkpoint",
    "distributed.checkpoint.state_dict",
    "distributed.device_mesh",
    "distributed.fsdp",
    "distributed.fsdp.fully_sharded_data_parallel",
    "distributed.fsdp.wrap",
    "distributed.optim",
    "distributions",
    "distributions.kl",
    "distributions.transforms",
    "func",
    "hub",
]


# Paths whose last name is a function of the module above as well: imported late, such a module would take the function's place.
NAMED_TWICE = ("autograd.gradcheck", "nn.utils.spectral_norm", "nn.utils.weight_norm")


def install() -> None:
    """Open the paths: imports that no file answers, attributes that a module has not, methods that Tensor has not. Called once, by the front door."""
    sys.meta_path.append(FINDER)  # last: it answers where no file of ours did
    late = set()
    for path in SHARED:
        module = sys.modules.get("tritensor." + path)
        if module is None:
            late.add("tritensor." + path)
        elif "__getattr__" not in vars(module):  # a package with its own answers first
            module.__getattr__ = module_getattr(path)  # type: ignore[method-assign]
    sys.meta_path.insert(0, LateImportFinder(late))  # first: it wraps the loader that Python's own finder finds
    for path in NAMED_TWICE:
        sys.modules.setdefault("tritensor." + path, PathModule(path))
    mark_methods()
    register()
