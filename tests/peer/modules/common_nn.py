"""PyTorch's older list of module and loss cases, `common_nn.py` of its wheel, read once with torch and once with tritensor in torch's place.

The file's own cases build modules from lambdas and close over targets that they draw: so it is executed twice, each time with numpy's
numbers behind `rand` and its like, and case k of the one is case k of the other.
"""

from __future__ import annotations

import importlib.util
import types
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

FOUND = importlib.util.find_spec("torch.testing._internal.common_nn")
GIVEN = ("constructor_args", "constructor_args_fn", "input_size", "input_fn", "input", "extra_args", "target_fn", "target_size")


class Library(types.ModuleType):
    """torch or tritensor, with functions that draw numpy's numbers."""

    def __init__(self, real: Any) -> None:
        super().__init__("torch")
        self.real = real
        self.rng = np.random.default_rng(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["real"], name)

    def made(self, values: Any, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Any:
        x = self.real.from_numpy(np.array(values))
        kept = x.dtype if x.dtype != self.real.float64 else self.real.get_default_dtype()
        x = x.to(dtype or kept)
        return x.requires_grad_() if requires_grad else x

    def rand(self, *size: Any, **options: Any) -> Any:
        return self.made(self.rng.random(_sizes(size, options)), **options)

    def randn(self, *size: Any, **options: Any) -> Any:
        shape = _sizes(size, options)
        values: Any = self.rng.standard_normal(shape)
        if getattr(options.get("dtype"), "is_complex", False):
            values = values + 1j * self.rng.standard_normal(shape)
        return self.made(values, **options)

    def rand_like(self, x: Any, dtype: Any = None) -> Any:
        return self.made(self.rng.random(tuple(x.shape)), dtype or x.dtype)

    def randn_like(self, x: Any, dtype: Any = None) -> Any:
        return self.made(self.rng.standard_normal(tuple(x.shape)), dtype or x.dtype)

    def randperm(self, n: int) -> Any:
        return self.made(self.rng.permutation(n))

    @contextmanager
    def drawing(self, seed: int) -> Iterator[None]:
        """Numbers of this seed, and tensors' own methods among those that draw them."""
        self.rng = np.random.default_rng(seed)
        cls = self.real.Tensor
        kept = cls.uniform_, cls.random_
        cls.uniform_ = lambda x: x.copy_(self.rand(*x.shape))
        cls.random_ = lambda x, n: x.copy_(self.made(self.rng.integers(0, n, tuple(x.shape))))
        try:
            yield
        finally:
            cls.uniform_, cls.random_ = kept


def _sizes(size: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    size = (options.pop("size"),) if "size" in options else size
    return tuple(int(n) for n in (size[0] if len(size) == 1 and not isinstance(size[0], int) else size))


def _iterable(x: Any) -> bool:
    return hasattr(x, "__iter__") and not isinstance(x, str)


def _anything(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """A decorator that changes nothing."""
    return lambda f: f


class Cases:
    """The file's cases with one library behind them."""

    def __init__(self, real: Any, reduction: Any) -> None:
        self.source = Library(real)
        assert FOUND is not None
        assert FOUND.origin is not None
        source = Path(FOUND.origin).read_text()
        start = source.index("TemporaryFile =")  # below the imports, of which these are used
        space: dict[str, Any] = {
            "__name__": "common_nn", "torch": self.source, "nn": real.nn, "F": real.nn.functional, "_Reduction": reduction, "TestCase": unittest.TestCase,
            "common_utils": types.SimpleNamespace(TEST_WITH_ROCM=False, set_rng_seed=lambda *_: None), "is_iterable": _iterable, "TEST_CUDA": False,
            "TEST_WITH_ROCM": False, "skipIfTorchDynamo": _anything, "SM90OrLater": False, "Variable": real.autograd.Variable, "_TensorOrTensors": Any, "Any": Any,
        }  # fmt: skip
        exec("from abc import abstractmethod\nimport tempfile, unittest\nfrom copy import deepcopy\nfrom functools import reduce, partial\n"
             "from itertools import product\nfrom operator import mul\nfrom collections.abc import Callable, Sequence\n" + source[start:], space)  # fmt: skip
        self.base = space["TestBase"]
        with self.source.drawing(0):
            modules = [*space["module_tests"], *space["get_new_module_tests"]()]
        self.all = [(case, False) for case in modules] + [(case, True) for case in space["criterion_tests"]]

    def name(self, index: int) -> str:
        case, _ = self.all[index]
        return str(case.get("fullname") or "_".join(filter(None, [case["module_name"], case.get("desc", "")])))

    def built(self, index: int) -> tuple[Any, list[Any], list[Any]]:
        """A case's module, what it is called with, and those of them that are differentiated."""
        case, loss = self.all[index]
        real = self.source.real
        build = case.get("constructor") or getattr(real.nn, case["module_name"])
        given = self.base(build, **{k: v for k, v in case.items() if k in GIVEN})
        given._required_arg_names = {*given._required_arg_names, "target"}
        module = build(*given.constructor_args)
        with self.source.drawing(index):
            inputs = given._get_input()
            args = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
            leaves = [x for x in flat(args) if x.dtype.is_floating_point or x.dtype.is_complex]
            if loss:
                target = given._get_arg("target", True)
                args += list(target) if isinstance(target, tuple) else [target]
        for x in leaves:
            x.requires_grad_(True)
        return module, [*args, *given.extra_args], leaves


def flat(x: Any) -> list[Any]:
    """The tensors of a nest."""
    if isinstance(x, tuple | list):
        return [t for part in x for t in flat(part)]
    return [x] if hasattr(x, "requires_grad") else []
