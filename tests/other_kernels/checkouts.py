"""The projects whose kernels are tried: where their sources are, at which commit, and how they are had."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import triton


class Project(NamedTuple):
    """A repository at one commit. `folder` is what of it is fetched, `path` what stands on sys.path while its trials run; `needs` are the packages that its files import
    beside torch and Triton: module, name to install."""

    name: str
    url: str
    commit: str
    folder: str
    path: str
    needs: tuple[tuple[str, str], ...] = ()

    def fetch(self) -> list[str]:
        """The commands that make a checkout, to be run in the folder of checkouts."""
        return [
            f"git clone -q --filter=blob:none --no-checkout --depth 1 {self.url} {self.name}",
            f"git -C {self.name} sparse-checkout set {self.folder}",
            f"git -C {self.name} fetch -q --depth 1 --filter=blob:none origin {self.commit}",
            f"git -C {self.name} checkout -q --detach {self.commit}",
        ]


# Triton's tutorials follow its language: those of the month of the newest release, and those of the oldest that is supported.
VERSION = tuple(int(n) for n in triton.__version__.split(".")[:2])
_OLD = VERSION < (3, 7)
_TUTORIALS = "6cc4505027d7b39fe18a44a7f89085b8babb7400" if _OLD else "63068fcc274cd152fb34abe1bcab10e5078b0df5"

TRITON = Project(
    "triton-2025-12" if _OLD else "triton-2026-08",
    "https://github.com/triton-lang/triton",
    _TUTORIALS,
    "python/tutorials third_party/nvidia/backend/lib",
    "python/tutorials",
    (("tabulate", "tabulate"), ("pytest", "pytest")),
)
LIGER = Project(
    "Liger-Kernel",
    "https://github.com/linkedin/Liger-Kernel",
    "ead96b618e5c67bddc6a6e9bcb99bfe6b5ab661c",
    "src",
    "src",
    (("packaging", "packaging"),),
)
ATTORCH = Project("attorch", "https://github.com/BobMcDear/attorch", "67c2772baf33913ef51c2d1064f746ca17b63749", "attorch", ".")
UNSLOTH = Project(
    "unsloth",
    "https://github.com/unslothai/unsloth",
    "015bdef0d94a241bcd94eec7a405b1700632180d",
    "unsloth",
    ".",
    (("packaging", "packaging"),),
)
FLAG_GEMS = Project(
    "FlagGems", "https://github.com/FlagOpen/FlagGems", "532ff438c70343d7aec9becdabb76a71225a0553", "src", "src", (("yaml", "PyYAML"),)
)
MAMBA = Project(
    "mamba",
    "https://github.com/state-spaces/mamba",
    "e9594ce1c732d97440f0332fdc43170a2294dbfa",
    "mamba_ssm",
    ".",
    (("einops", "einops"), ("packaging", "packaging")),
)
FLASH_ATTENTION = Project(
    "flash-attention",
    "https://github.com/Dao-AILab/flash-attention",
    "0251105a2fb19d2957484b7f023cd8c115286ced",
    "flash_attn",
    ".",
)
LIGHTLLM = Project("lightllm", "https://github.com/ModelTC/lightllm", "fc72ffab9a3455cfb571f22d45ab777cc29de0de", "lightllm", ".")
FLASH_LINEAR_ATTENTION = Project(
    "flash-linear-attention",
    "https://github.com/fla-org/flash-linear-attention",
    "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89",
    "fla",
    ".",
    (("packaging", "packaging"), ("einops", "einops")),
)
BITSANDBYTES = Project(
    "bitsandbytes",
    "https://github.com/bitsandbytes-foundation/bitsandbytes",
    "95f9af309d4d5793847169c39288dcd3fcbdf564",
    "bitsandbytes",
    ".",
    (("packaging", "packaging"),),
)
PROJECTS = (TRITON, LIGER, ATTORCH, UNSLOTH, FLAG_GEMS, MAMBA, FLASH_ATTENTION, LIGHTLLM, FLASH_LINEAR_ATTENTION, BITSANDBYTES)


def state(project: Project, folder: Path) -> str:
    """ "" where the checkout stands at its commit, else what is wrong with it."""
    at = folder / project.name
    if not at.is_dir():
        return "is not there"
    head = subprocess.run(["git", "-C", str(at), "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode or head.stdout.strip() != project.commit:
        return f"stands at {head.stdout.strip() or 'no commit'}, not at {project.commit}"
    changed = subprocess.run(["git", "-C", str(at), "status", "--porcelain", "-uno"], capture_output=True, text=True)
    return "has changed files" if changed.stdout.strip() else ""


def clone(project: Project, folder: Path) -> None:
    """Make the checkout. Raises CalledProcessError with what git said."""
    folder.mkdir(parents=True, exist_ok=True)
    for command in project.fetch():
        subprocess.run(command.split(), cwd=folder, check=True)
