"""A trial: a project's own function called with small inputs, and its numbers beside those of our CPU tensors."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tritensor as tt
from tests.other_kernels.checkouts import Project

TRIALS: dict[str, Trial] = {}


class Trial(NamedTuple):
    """One trial. `file` is where in the project the kernels stand; `note` what a reader of the result must know; `finding` what the emulated device is
    right to refuse, as a part of its error."""

    name: str
    project: Project
    file: str
    check: Callable[[Run], None]
    note: str
    seconds: float
    finding: str = ""


def trial(
    project: Project, file: str, note: str = "", seconds: float = 300.0, finding: str = ""
) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
    """Enter a check in the table, under the project's name and its own. `seconds` is how long it may take, numbers and compilation each."""

    def enter(check: Callable[[Run], None]) -> Callable[[Run], None]:
        name = project.name.lower().removesuffix("-kernel") + "/" + check.__name__
        TRIALS[name] = Trial(name, project, file, check, note, seconds, finding)
        return check

    return enter


class Run:
    """What a check works with: inputs on device cuda, and the comparison. Where launches are only recorded, nothing is compared.

    `torch` is what `import torch` gives the project: this library.
    """

    def __init__(self, folder: Path, numbers: bool) -> None:
        self.folder, self.numbers = folder, numbers
        self.torch = tt
        self.compared = 0
        tt.manual_seed(0)

    def randn(self, *shape: int, dtype: Any = tt.float32) -> tt.Tensor:
        """Normal numbers, the same wherever it runs."""
        return tt.randn(*shape).to(dtype).cuda()

    def rand(self, *shape: int, dtype: Any = tt.float32) -> tt.Tensor:
        """Numbers between 0 and 1."""
        return tt.rand(*shape).to(dtype).cuda()

    def randint(self, high: int, shape: Sequence[int], dtype: Any = tt.int64) -> tt.Tensor:
        """Whole numbers from 0 to high - 1."""
        return tt.randint(0, high, tuple(shape)).to(dtype).cuda()

    def close(self, got: Any, want: Any, tolerance: float = 1e-4, what: str = "the result") -> None:
        """Raise when two results, or tuples of them, differ by more than the tolerance, relative to the largest number that is wanted (1 at least)."""
        if isinstance(got, tuple | list):
            assert len(got) == len(want), f"{what}: {len(got)} results, {len(want)} are wanted"
            for i, pair in enumerate(zip(got, want, strict=True)):
                self.close(*pair, tolerance, f"{what}[{i}]")
            return
        if got is None and want is None:
            return
        a, b = _numbers(got), _numbers(want)
        assert a.shape == b.shape, f"{what}: of shape {a.shape}, wanted is {b.shape}"
        self.compared += 1
        if not self.numbers or a.size == 0:
            return
        known = np.isfinite(b)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | known
        scale = max(1.0, float(np.abs(b[known]).max(initial=0.0)))
        off = np.abs(np.where(known, a - b, 0.0)).max()
        right = bool(same.all()) and off <= tolerance * scale
        assert right, f"{what}: off by {off:.3g}, where the numbers go up to {scale:.3g}"

    def same(
        self, theirs: Callable[..., Any], ours: Callable[..., Any], *inputs: Any, tolerance: float = 1e-4, of: Sequence[int] | None = None
    ) -> None:
        """Call both, theirs on cuda tensors and ours on copies on the CPU, forward and backward, and compare results and gradients.

        A result that is a tuple is compared member by member. `of`: the numbers of the inputs whose gradients are asked; all that are floating by default,
        none for ().
        """
        wanted = [i for i, x in enumerate(inputs) if isinstance(x, tt.Tensor) and x.is_floating_point()] if of is None else of
        on_gpu = [_leaf(x, i in wanted, "cuda") for i, x in enumerate(inputs)]
        on_cpu = [_leaf(x, i in wanted, "cpu") for i, x in enumerate(inputs)]
        got, want = theirs(*on_gpu), ours(*on_cpu)
        got, want = (y if isinstance(y, tuple | list) else (y,) for y in (got, want))
        self.close(tuple(y.detach() for y in got), tuple(y.detach() for y in want), tolerance)
        slopes = [tt.randn(*y.shape) for y in want]
        for outs, kind in ((got, "cuda"), (want, "cpu")):
            pairs = [(y, g.to(y.dtype).to(kind)) for y, g in zip(outs, slopes, strict=True) if y.requires_grad]
            assert pairs or not wanted, "no result has a gradient"
            if wanted:
                tt.autograd.backward([y for y, _ in pairs], [g for _, g in pairs])
        for i in wanted:
            assert on_gpu[i].grad is not None, f"no gradient for input {i}"
            self.close(on_gpu[i].grad, on_cpu[i].grad, tolerance, f"the gradient of input {i}")


def _leaf(x: Any, grad: bool, where: str) -> Any:
    return x.detach().clone().to(where).requires_grad_(grad) if isinstance(x, tt.Tensor) else x


def _numbers(x: Any) -> np.ndarray:
    """Any result as float64 on the host."""
    if isinstance(x, tt.Tensor):
        x = x.detach().cpu()
        x = (x.float() if x.is_floating_point() else x).numpy()
    return np.asarray(x, np.float64)


def definitions(path: Path, until: str = "") -> dict[str, Any]:
    """The names that a script defines, without what it does when it runs: of its top level, calls that stand alone are left out, and all that comes
    from the line on that begins with `until`.

    Code objects keep file and lines, so that Triton finds the kernels' sources.
    """
    source = path.read_text()
    end = next((i for i, line in enumerate(source.splitlines(), 1) if until and line.startswith(until)), 1 << 30)
    tree = ast.parse(source, str(path))
    tree.body = [n for n in tree.body if n.lineno < end and not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Call))]
    module = types.ModuleType(path.stem.replace("-", "_"))
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module.__dict__


def bare(folder: Path, *packages: str) -> None:
    """Packages whose own files are not run, so that a file below them is imported alone: each is an empty module with a path."""
    for package in packages:
        if package not in sys.modules:
            module = types.ModuleType(package)
            module.__path__ = [str(folder / package.replace(".", "/"))]
            sys.modules[package] = module
