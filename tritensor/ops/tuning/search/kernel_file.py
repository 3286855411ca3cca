"""A Triton kernel of a file of your own: its configs, the calls to time it at, what it launches with each config."""

from __future__ import annotations

import ast
import importlib.util
import json
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda.compiler.arguments import LaunchCall, parameters
from tritensor.cuda.compiler.recorded_call import call_of
from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.ops.array import CudaArray, empty, from_host, to_host
from tritensor.ops.table import Spec
from tritensor.ops.tuning.buckets import bucket_of, dtype_of
from tritensor.ops.tuning.search.plan import Listed
from tritensor.ops.tuning.search.targets import Target
from tritensor.ops.tuning.tuned import Place

FORM = 'shapes = [{"args": [{"shape": [1000000], "dtype": "float32"}, ..., 1000000], "grid": ["cdiv(1000000, BLOCK)"]}, ...]'
OPTIONS = ("num_warps", "num_stages", "num_ctas")


class KernelFileError(ValueError):
    """A file or a kernel in it that cannot be tuned; the message says what is missing."""


class KernelCall(NamedTuple):
    """One call: arrays as Specs and numbers, the grid as `fields of the config -> sizes`."""

    args: tuple[Any, ...]
    grid: Callable[[dict[str, Any]], tuple[int, ...]]


class KernelJob(NamedTuple):
    """A kernel's target as a process that has nothing loaded can find it."""

    named: str
    shapes: str | None
    place: Place
    number: int
    heuristic: dict[str, Any]


class KernelFile:
    """What a file gives. Raises KernelFileError."""

    def __init__(self, named: str, shapes: Path | None) -> None:
        file, _, name = named.rpartition(":")
        if not file.endswith(".py") or not name:
            raise KernelFileError(f"--kernel {named}: give a file and a kernel in it, my_kernels.py:add_kernel")
        if not Path(file).is_file():
            raise KernelFileError(f"--kernel {named}: {file}: no such file")
        self.named, self.name = named, name
        self._module = _load(Path(file), named)
        found: Any = getattr(self._module, name, None)
        if found is None:
            raise KernelFileError(f"--kernel {named}: {file} has no {name}; it has {', '.join(self._kernels()) or 'no kernel'}")
        given: Any = getattr(found, "configs", None) or getattr(self._module, "configs", ())
        self.configs = [_fields(c) for c in given]
        while not hasattr(found, "arg_names") or hasattr(found, "configs") or hasattr(found, "values"):  # under autotune and heuristics
            if not hasattr(found, "fn"):
                raise KernelFileError(f"--kernel {named}: {name} is a {type(found).__name__}, no @triton.jit kernel")
            # constants that a function makes of arguments are no configs to choose among
            if hasattr(found, "values"):
                raise KernelFileError(
                    f"--kernel {named}: {name} has @triton.heuristics, which calculate constants at each call; write them into `configs`"
                )
            found = found.fn
        self.kernel = found
        if len(self.configs) < 2:
            raise KernelFileError(
                f"--kernel {named}: {len(self.configs)} configs; give several, by @triton.autotune(configs=[...]) or a list `configs` in the file"
            )
        self._check_configs()
        rows: Any = getattr(self._module, "shapes", None) if shapes is None else _rows(shapes)
        if not rows:
            raise KernelFileError(f"--kernel {named}: no calls to time it at; give --shapes, or a list in the file: {FORM}")
        self.calls = [self._call(i, row) for i, row in enumerate(rows)]

    def _kernels(self) -> list[str]:
        return [n for n, v in vars(self._module).items() if hasattr(v, "arg_names")]

    def _check_configs(self) -> None:
        known = {p.name for p in parameters(self.kernel.fn)}
        for fields in self.configs:
            if strange := set(fields) - known - set(OPTIONS):
                raise KernelFileError(
                    f"--kernel {self.named}: a config has {', '.join(sorted(strange))}; the kernel's parameters are {', '.join(sorted(known))}"
                )

    def _call(self, i: int, row: Any) -> KernelCall:
        try:
            args = tuple(Spec(tuple(x["shape"]), dtypes.as_dtype(x["dtype"]).numpy) if isinstance(x, dict) else x for x in row["args"])
            grid = row["grid"]
            sizes = grid if callable(grid) else (lambda fields: tuple(_number(g, fields) for g in grid))
            sizes(self.configs[0])
        except Exception as error:  # the file's own function of the grid may raise anything
            raise KernelFileError(f"--kernel {self.named}: call {i}: {type(error).__name__}: {error}; calls are like {FORM}") from None
        return KernelCall(args, sizes)

    def place(self, number: int) -> Place:
        """What a result for a call goes by."""
        args = self.calls[number].args
        key = tuple(x.dtype if isinstance(x, Spec) else x for x in args)
        return Place(
            self.named, f"call {number}", self.name, dtype_of(key), bucket_of(tuple(x for x in key if not isinstance(x, np.dtype)))
        )

    def launch(self, number: int, args: tuple[Any, ...], fields: dict[str, Any]) -> None:
        """Launch a call with a config."""
        launch(self.kernel, self.calls[number].grid(fields), *args, **fields)


def listed(named: str, shapes: Path | None) -> list[Listed]:
    """A target for each call, the first config in the heuristic's place. Raises KernelFileError."""
    file = KernelFile(named, shapes)
    found = []
    for number, call in enumerate(file.calls):
        args = tuple(empty(x.shape, x.dtype, gpu(0)) if isinstance(x, Spec) else x for x in call.args)
        calls: list[Any] = []
        for fields in file.configs:
            constants = {k: v for k, v in fields.items() if k not in OPTIONS}
            try:
                given = fields["num_warps"], fields["num_stages"], _options(fields)
                calls.append((call_of(LaunchCall(file.kernel, call.grid(fields), args, constants, *given)),))
            except Exception as error:  # wrong arguments for this kernel: every config says so
                calls.append(f"is refused: {type(error).__name__}: {error}")
        if isinstance(calls[0], str):
            raise KernelFileError(f"--kernel {named}: call {number} with its first config {calls[0]}")
        target = Target(file.place(number), file.place(number).dtype, number, file.configs[0], tuple(file.configs[1:]))
        found.append(Listed(target, list(file.configs), calls))
    return found


def job(named: str, shapes: Path | None, target: Target) -> KernelJob:
    """The target for another process."""
    return KernelJob(named, None if shapes is None else str(shapes), target.place, target.number, target.heuristic)


def prepared(job: KernelJob) -> tuple[list[Callable[[dict[str, Any]], Any]], Callable[[], list[np.ndarray]]]:
    """(calls that take a config's fields, the arrays' values): arrays are filled with small numbers; the kernel writes into them."""
    file = KernelFile(job.named, None if job.shapes is None else Path(job.shapes))
    rng = np.random.default_rng(0)

    def array(x: Any) -> Any:
        if not isinstance(x, Spec):
            return x
        values = rng.standard_normal(x.shape) if x.dtype.kind not in "iub" else rng.integers(0, 2, x.shape)
        return from_host(np.asarray(values).astype(x.dtype), gpu(0))

    args = tuple(array(x) for x in file.calls[job.number].args)
    arrays = [x for x in args if isinstance(x, CudaArray)]
    return [lambda fields: file.launch(job.number, args, fields)], lambda: [np.asarray(to_host(x)).astype(np.float64) for x in arrays]


def _options(fields: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    ctas = fields.get("num_ctas", 1)
    return () if ctas == 1 else (("num_ctas", ctas), ("launch_cooperative_grid", False), ("launch_pdl", False))


def _fields(config: Any) -> dict[str, Any]:
    """The fields of a triton.Config, or of a plain dict."""
    if isinstance(config, dict):
        return {"num_warps": 4, "num_stages": 3, **config}
    made = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    return made if config.num_ctas == 1 else {**made, "num_ctas": config.num_ctas}


def _load(file: Path, named: str) -> Any:
    name = f"tuned_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # kernels are found through their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file raises
        del sys.modules[name]
        raise KernelFileError(f"--kernel {named}: the file raises when it is run: {type(error).__name__}: {error}") from error
    return module


def _rows(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise KernelFileError(f"--shapes {path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise KernelFileError(f"--shapes {path}: is no JSON ({error})") from None


_OPERATORS: dict[type, Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def _number(text: Any, fields: dict[str, Any]) -> int:
    """A size of a grid: a number, or a formula of numbers, a config's fields, + - * // and cdiv. Raises ValueError."""
    if isinstance(text, int):
        return text

    # read, not run: a file of shapes is data, and eval would run whatever stands in it
    def value(node: ast.AST) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in fields:
            return int(fields[node.id])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return int(_OPERATORS[type(node.op)](value(node.left), value(node.right)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cdiv" and len(node.args) == 2:
            return -(-value(node.args[0]) // value(node.args[1]))
        raise ValueError(f"grid {text!r}: write numbers, {', '.join(fields)}, + - * // and cdiv(a, b)")

    return value(ast.parse(str(text), mode="eval").body)
