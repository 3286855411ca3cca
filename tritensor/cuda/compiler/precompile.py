"""Compilation of launches that were recorded without a GPU into a pack, in several processes; one that dies costs one kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tritensor.cuda.compiler import child_processes, cubin_cache
from tritensor.cuda.compiler.arguments import Specialization
from tritensor.cuda.compiler.pack import Pack, write_pack
from tritensor.ground.errors import LaunchError

# Compute capabilities that Triton's assembler knows, and the GPUs that have them.
ARCHS = {
    75: "T4, RTX 20",
    80: "A100, A30",
    86: "RTX 30, A10, A40",
    87: "Jetson Orin",
    89: "L4, L40, RTX 40",
    90: "H100, H200, GH200",
    100: "B200, GB200",
    103: "B300, GB300",
    120: "RTX 50",
    121: "DGX Spark",
}


class Done(NamedTuple):
    """One kernel's end: its row for the pack, or what went wrong."""

    row: tuple[bytes, bytes, bytes] | None
    failure: str


def archs(text: str) -> list[int]:
    """The capabilities in "sm_80,sm_90" (or "80,90"), each once. Raises ValueError for one that is not known."""
    found = []
    for part in text.split(","):
        name = part.strip().lower().removeprefix("sm_").removesuffix("a")
        if not name.isdigit() or int(name) not in ARCHS:
            known = ", ".join(f"sm_{a} ({gpus})" for a, gpus in ARCHS.items())
            raise ValueError(f"unknown architecture {part.strip()!r}; known are {known}")
        if int(name) not in found:
            found.append(int(name))
    return found


def warm(arch: int) -> None:
    """Let Triton hash its own sources and its assembler, half a second that each process forked from this one then has for nothing."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    try:
        from triton.runtime.cache import triton_key  # where it is from Triton 3.8 on
    except ImportError:
        from triton.compiler.compiler import triton_key
    triton_key()
    make_backend(GPUTarget("cuda", arch, 32)).hash()


def compile_all(specs: Sequence[Specialization], arch: int, processes: int) -> Iterator[tuple[int, Done]]:
    """(place, its end) for every specialization, in the order in which they end. A process that dies costs the kernel it was at.

    The caller must not have started the GPU's driver, which does not live through a fork.
    """
    from tritensor.cuda.compiler.compile import describe

    def compile_one(spec: Specialization) -> Done:
        try:
            return Done(cubin_cache.pack_row(spec, arch), "")
        except LaunchError as error:
            return Done(None, str(error))

    warm(arch)
    for n, end in child_processes.each(compile_one, specs, processes):
        if isinstance(end, child_processes.Died):
            end = Done(None, f"{describe(specs[n])} for sm_{arch}: {end}; --jobs 1 needs least memory")
        yield n, end


def check_writable(path: Path) -> Pack | None:
    """Make sure that a pack can be written to `path`, before anything is compiled; returns the pack that is there and is to be extended.

    Raises LaunchError naming what is in the way: a folder, a foreign file, a pack of another Triton, no right to write.
    """
    # before hours of compiling, and not behind them
    if path.is_dir():
        raise LaunchError(f"--out {path}: is a folder; give the name of a file in it, such as {path / 'kernels.ttpack'}")
    there = None
    if path.exists():
        try:
            there = Pack(path)
        except LaunchError as error:
            raise LaunchError(f"--out {path}: a file that is no whole pack stands there ({error})") from None
        if there.about.get("triton") != cubin_cache.version():
            made = there.about.get("triton")
            there.close()
            raise LaunchError(
                f"--out {path}: a pack of Triton {made} stands there and this is Triton {cubin_cache.version()}; remove it or give another name"
            )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        probe = path.with_name(f".{path.name}.{os.getpid()}")
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise LaunchError(f"--out {path}: cannot be written: {error.strerror or error}; give a path in a folder of yours") from None
    return there


def save(path: Path, rows: dict[bytes, tuple[bytes, bytes, bytes]], archs: Sequence[int], there: Pack | None, made_by: str) -> int:
    """Write rows and what `there` holds of other kernels to a pack; returns its size in bytes.

    Kernels that were made anew from a changed source replace the old ones. Raises OSError.
    """
    all_archs = set(archs)
    rows = dict(rows)
    if there is not None:
        all_archs |= set(there.about.get("archs", ()))
        fresh = {meaning for _, meaning, _ in rows.values()}
        for key, meaning, blob in there.rows():
            # a kernel whose source has changed would never be found again, and the pack would only grow
            if meaning not in fresh:
                rows.setdefault(key, (key, meaning, blob))
    about = {"triton": cubin_cache.version(), "tritensor": made_by, "archs": sorted(all_archs), "kernels": len(rows)}
    return write_pack(path, about, rows.values())
