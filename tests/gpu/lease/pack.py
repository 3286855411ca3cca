"""The lease's kernels, compiled where no GPU is: what its steps launch, most worth first, in one compressed file beside the checkout's build.

A kernel's key is made of its source, its arguments, Triton's version and settings: a pack that Python 3.11 made serves Python 3.12, and another numpy.
"""

from __future__ import annotations

import lzma
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.gpu.lease.identity import ROOT, commit, installed, tree
from tests.gpu.lease.perform import write
from tritensor import __version__
from tritensor.cuda.compiler.pack import Pack, write_pack
from tritensor.ground.errors import LaunchError

PACK = ROOT / "build" / "lease.ttpack.xz"
MOST_BYTES = 22 << 20  # of the compressed file: it travels with the tree
TUNED_FOR = ROOT / "kernels" / "tuned" / "nvidia-h200.json"  # its configs are launched there, and are compiled here


def jobs(ops: Sequence[str] = ()) -> list[Any]:
    """What the steps launch, as jobs to be recorded: the smoke tier, training, the host's ops, quick rows, the suite, all rows. Some ops: of those alone."""
    from bench.gpu import warm as rows
    from bench.gpu.host import calls
    from tests.gpu import demos, smoke
    from tests.gpu import warm as suite
    from tritensor.ops.table import registry

    chosen = [op for name, op in registry.items() if not ops or name in ops]
    found: list[Any] = [(f"smoke {n}/{t}", lambda n=n, t=t: smoke.ask(n, t, False)) for n, t in smoke.jobs(ops)]
    if not ops:
        found += [(f"demo {name}", lambda d=demo: d.make("cuda").step(0)) for name, demo in demos.DEMOS.items()]
        found += [(f"host {name}", call) for name, call in _host(calls, rows.Recorded())]
    found += rows.jobs(chosen, quick=True, training=not ops)
    of_suite = suite.jobs(ops, steps=not ops)
    worth = {"float32": 0, "bfloat16": 1, "float16": 2}
    found += sorted(of_suite, key=lambda job: worth.get(job[0].rpartition("/")[2], 3) if "/" in job[0] else 2 if job[0] in registry else -1)
    return found + rows.jobs(chosen, quick=False, training=False)


def _host(calls: Any, lib: Any) -> list[Any]:
    """A job for all of the host's ops: they share their inputs."""

    def run() -> None:
        for call in calls(lib).values():
            call()

    return [("ops", run)]


def make(path: Path, ops: Sequence[str], arch: int, processes: int, minutes: float | None) -> int:
    """Compile into `path`; 0, or 1 where a kernel did not compile."""
    from bench.gpu.compile_ahead import Row, warm

    os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined
    os.environ["TRITENSOR_TUNED"] = str(TUNED_FOR)
    os.environ.pop("TRITENSOR_PACK", None)
    start = time.monotonic()
    about = {"triton": installed("triton"), "tritensor": __version__, "archs": [arch], "commit": commit(), "tree": tree()}
    rows: dict[bytes, Row] = {}  # in the order of their worth
    made = warm(jobs(ops), arch, processes, take=lambda some: [rows.setdefault(r[0], r) for r in some], seconds=minutes and 60 * minutes)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept, data = _fitting(path, list(rows.values()), about)
    write(path, data)
    print("\n".join(made.failures[:20]))
    print(
        f"{path}: {kept} of {len(rows)} kernels by Triton {about['triton']}, {len(data) / 2**20:.1f} MiB, {time.monotonic() - start:.0f} s, "
        f"{len(made.failures)} failed{', stopped: the same command goes on' if made.stopped else ''}"
    )
    return 1 if made.failures else 0


def _fitting(path: Path, rows: list[Any], about: dict[str, Any]) -> tuple[int, bytes]:
    """How many of the first rows fit into MOST_BYTES, and the compressed pack of those."""
    plain = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        while True:
            write_pack(plain, about | {"kernels": len(rows)}, rows)
            data = lzma.compress(plain.read_bytes(), preset=6)
            if len(data) <= MOST_BYTES:
                return len(rows), data
            rows = rows[: int(len(rows) * 0.97 * MOST_BYTES / len(data))]
    finally:
        plain.unlink(missing_ok=True)


def unpacked(path: Path, to: Path) -> tuple[Path | None, dict[str, Any]]:
    """The pack for this process's Triton, and what is known of it: "said" in a line; None where it cannot serve."""
    try:
        to.write_bytes(lzma.decompress(path.read_bytes()))
        pack = Pack(to)
    except (OSError, lzma.LZMAError, LaunchError) as error:
        return None, {"said": f"{path.name} is not used: {error}"}
    about = pack.about
    pack.close()
    if about.get("triton") != installed("triton"):
        return None, {"said": f"{path.name} is of Triton {about.get('triton')} and is not used"}
    return to, about | {"said": f"pack of {about.get('kernels')} kernels"}
