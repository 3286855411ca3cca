"""Two environments of the same libraries: one with tritensor's stand-in, one with PyTorch, made by pip where they are not there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TORCH = ("torch==2.13.0", "torchvision")
TOOLS = ("pytest>=8.3", "pytest-timeout", "packaging", "scipy", "scikit-learn", "pandas", "matplotlib", "parameterized", "hypothesis")


class Environment(NamedTuple):
    """A Python with libraries: under which name the report knows it, and its interpreter."""

    name: str
    python: Path

    def constraints(self) -> list[str]:
        """pip's words that keep the torch that is here."""
        found = sorted(self.python.parent.parent.glob("lib/python*/site-packages/torch-*.dist-info/constraints.txt"))
        kept = self.python.parent.parent / "constraints.txt"
        if not found:
            kept.write_text("".join(f"{n}=={v}\n" for n, v in self.installed(("torch", "torchvision")).items()))
        return ["-c", str(found[0] if found else kept)]

    def run(
        self,
        words: Sequence[str],
        seconds: float,
        folder: Path | None = None,
        plugins: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run this Python with one BLAS thread, with modules of a folder of plugins to import; raises TimeoutExpired."""
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        # Nothing is to be fetched while a library runs: what wants the network says so at once.
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "offline", "TOKENIZERS_PARALLELISM": "false"}
        # This repository's own folder would answer `import kernels`, which transformers tries; another folder with tritensor may be asked for.
        given = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and Path(p).resolve() != ROOT]
        path = os.pathsep.join([*given, *([str(plugins)] if plugins else ())])
        # Suites start commands that pip has put beside the interpreter (accelerate launch), as in an environment that is activated.
        commands = os.pathsep.join((str(self.python.parent), os.environ.get("PATH", os.defpath)))
        surroundings = {**os.environ, **one, **offline, "MPLBACKEND": "agg", "PATH": commands, "PYTHONPATH": path, **(variables or {})}
        return subprocess.run(
            [str(self.python), *words], cwd=folder, env=surroundings, capture_output=True, text=True, timeout=seconds, errors="replace"
        )

    def installed(self, names: Sequence[str]) -> dict[str, str]:
        """{name: version} of the distributions that are here."""
        code = "import importlib.metadata as m, sys\nfor n in sys.argv[1:]:\n    try: print(n, m.version(n))\n    except m.PackageNotFoundError: pass"
        return dict(line.split() for line in self.run(["-c", code, *names], 60).stdout.splitlines())

    def install(self, names: Sequence[str]) -> str:
        """What pip says where it cannot install; "" where all are here."""
        done = self.run(["-m", "pip", "install", "--quiet", *self.constraints(), *names], 3600)
        return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def made(folder: Path) -> tuple[Environment, Environment]:
    """(with tritensor, with torch) below a folder, made if they are not there. Raises CalledProcessError where pip or the stand-in fails."""
    ours, theirs = (Environment(name, folder / name / "bin" / "python") for name in ("tritensor", "torch"))
    for which in (ours, theirs):
        if not which.python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / which.name)], check=True)
            # before any library, which would bring a torch of its own
            first = ["--editable", str(ROOT)] if which is ours else TORCH
            subprocess.run([str(which.python), "-m", "pip", "install", "--quiet", *first, *TOOLS], check=True)
            if which is ours:
                subprocess.run([str(folder / which.name / "bin" / "tritensor"), "stand-in", "install"], check=True)
    return ours, theirs
