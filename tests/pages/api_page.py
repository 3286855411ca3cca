"""docs/api.md: every public name of PyTorch's, and whether it is here. `python -m tests.pages.api_page` writes it anew."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import tritensor as tt
from tests.signatures.differences import DIFFERENCES
from tritensor.torch_compat import finder, recorded_names

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "api.md"
MODULES = {
    "": "torch", "Tensor": "torch.Tensor", "linalg": "", "fft": "", "special": "", "autograd": "", "autograd.function": "", "autograd.functional": "",
    "autograd.grad_mode": "", "autograd.graph": "", "autograd.forward_ad": "", "func": "", "nn": "", "nn.functional": "", "nn.init": "", "nn.parameter": "",
    "nn.utils": "", "nn.utils.rnn": "", "nn.utils.parametrize": "", "nn.utils.parametrizations": "", "nn.modules.module": "", "optim": "",
    "optim.lr_scheduler": "", "optim.swa_utils": "", "utils.data": "", "utils.checkpoint": "", "utils.dlpack": "", "amp": "", "random": "", "testing": "",
    "backends": "", "backends.cuda": "", "cuda": "", "cuda.amp": "", "signal.windows": "", "distributions": "", "jit": "", "multiprocessing": "",
    "accelerator": "", "compiler": "", "serialization": "", "sparse": "", "types": "",
}  # fmt: skip
HEAD = """# PyTorch API: what is here

Every public name of PyTorch {version} below the modules that programs are written with, as `tests/torch_compat/record.py` read them from an installed one.
**here**: the name exists and means the same; every function's signature and answers are held against PyTorch's by tests. **differs**: it exists, and something is
otherwise on purpose (the reasons: [differences.md](differences.md) and `tests/signatures/differences.py`). **not here**: asking for it raises an
AttributeError that says so. This page is written by `python -m tests.pages.api_page`.
"""


def is_here(path: str, name: str) -> bool:
    """Whether we have a name of one of PyTorch's modules, and no stand-in for it."""
    if path == "Tensor":
        return hasattr(tt.Tensor, name)
    if not path or finder.is_here(path):
        import importlib

        module = importlib.import_module("tritensor" + ("." + path if path else ""))
        value = getattr(module, name, finder.ABSENT)
        return value is not finder.ABSENT and "not in tritensor:" not in str(getattr(value, "__doc__", ""))
    return False


@functools.cache
def _from_signatures() -> dict[tuple[str, str], list[str]]:
    """{(module, name): what is different} of tests/signatures/differences.py."""
    found: dict[tuple[str, str], list[str]] = {}
    for functions, what, why in DIFFERENCES:
        for full in functions.split():
            first, _, name = full.removesuffix(".__init__").rpartition(".")
            path = {"torch": "", "F": "nn.functional"}.get(first, first)
            found.setdefault((path, name), []).append(f"{what}: {why}")
    return found


@functools.cache
def _from_the_page() -> list[tuple[set[str], str]]:
    """(names, first column) of every row of docs/differences.md."""
    rows = []
    for line in (ROOT / "docs/differences.md").read_text().splitlines():
        if line.startswith("| ") and "`" in line:
            first = re.split(r"(?<!\\)\|", line)[1].strip()
            words = {w for code in re.findall(r"`([^`]*)`", first) for w in re.findall(r"[A-Za-z_]\w+", code)}
            rows.append((words - {"dim", "dtype", "inf", "nan", "float32", "float64"}, first))
    return rows


def differs(path: str, name: str) -> list[str]:
    """How a name that is here differs."""
    said = list(_from_signatures().get((path, name), ()))
    if path in ("", "Tensor", "nn.functional"):
        said += [f"see {first}" for words, first in _from_the_page() if name in words]
    return said


def section(path: str) -> tuple[str, tuple[int, int, int]]:
    """One module's names, and how many are here, differ, and are not."""
    listed = sorted(recorded_names.names_of(path), key=str.lower)
    here = [n for n in listed if is_here(path, n)]
    unlike = {n: said for n in here if (said := differs(path, n))}
    gone = [n for n in listed if n not in set(here)]
    counts = (len(here) - len(unlike), len(unlike), len(gone))
    lines = [f"## {MODULES[path] or 'torch.' + path}", ""]
    same = [n for n in here if n not in unlike]
    if same:
        lines += ["**here**: " + ", ".join(f"`{n}`" for n in same), ""]
    if unlike:
        lines += ["**differs**:", "", *(f"- `{n}`: {'; '.join(said)}" for n, said in unlike.items()), ""]
    if gone:
        lines += ["**not here**: " + ", ".join(f"`{n}`" for n in gone), ""]
    return "\n".join(lines), counts


def page() -> str:
    """The whole page: totals, then the modules."""
    parts = {path: section(path) for path in MODULES if recorded_names.names_of(path)}
    rows = ["| module | names | here | differs | not here |", "|---|--:|--:|--:|--:|"]
    total = [0, 0, 0]
    for path, (_, counts) in parts.items():
        total = [t + c for t, c in zip(total, counts, strict=True)]
        rows.append(f"| {MODULES[path] or 'torch.' + path} | {sum(counts)} | {' | '.join(str(c) for c in counts)} |")
    rows.append(f"| all | {sum(total)} | {' | '.join(str(c) for c in total)} |")
    return "\n".join([HEAD.format(version=recorded_names.VERSION), *rows, "", *(text for text, _ in parts.values())])


if __name__ == "__main__":
    PAGE.write_text(page())
