"""The README's figures of one run: what benchmarks print is read, a line that is missing is named, the section says how it was made."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from bench.cpu import host, train
from bench.cpu.timing import Paired, line
from bench.reports import readme_figures as figures
from bench.small import sequence
from bench.small.sides import OURS, TORCH, Library, summary
from bench.small.table import Table

README = Path(__file__).resolve().parents[2] / "README.md"
RANKS: dict[str, Any] = {
    "all_reduce": [{"ranks": 2, "ratios": {"gloo / sync": 4.0}}, {"ranks": 2, "ratios": {"gloo / sync": 20.0}}, {"ranks": 4, "ratios": {}}],
    "steps": [{"ranks": 1, "torch / tritensor": 1.0}, {"ranks": 2, "torch / tritensor": 2.0}],
    "sharded": [{"ranks": 2, "kind": "ZeRO-1", "torch / tritensor": 2.5}, {"ranks": 2, "kind": "fully_shard", "torch / tritensor": 4.0}],
}


def printed() -> dict[str, str]:
    """What the benchmarks print, each line with a time of its own."""
    on_cpu = [line(label, Paired(1e-6 * k, 2e-6 * k, 0.5)) for k, label in enumerate(host.ELEVEN, 1)]
    mean = f"{'geometric mean of these eleven':<52}{0.91:>34.2f} x torch"
    together = [line(label, Paired(1e-6, 2e-6, 0.5)) for label in (sequence.ALONE, sequence.TOGETHER)]
    on_device = [line(label, Paired(1e-6, 4e-6 if "," in label else None, 0.25)) for label in figures.ON_DEVICE]
    steps = [line(label, Paired(1e-3, 2e-3, 0.5), 1e3, "ms") for label, *_ in train.STEPS]
    imports = [f"{name:48} {ms:7.1f} ms   {ms / 200:5.2f} x" for name, ms in
               {"import numpy, triton": 200, "import tritensor": 180, "import tritensor, 300 more ops": 190, "import torch": 900}.items()]  # fmt: skip
    return {
        "host": "\n".join(["host cost on tiny ...", *on_cpu, mean, *together, "host cost on device cuda (Stub H100), beside torch's CPU op", *on_device]),
        "small": "\n".join(small()), "train1": "\n".join(steps), "train2": "\n".join(steps), "imports": "\n".join(imports),
        "functions": f"{'T.add(x, x)':<60}{1:>10.3f} ms{0.5:>10.3f} ms{2:>8.2f} x torch\n340 calls, geometric mean 0.74; above 2: 0",
    }  # fmt: skip


def small() -> list[str]:
    """What `bench small` prints of one action and one workload, at a ratio of 1.5 and 0.5."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for what, ratio in (("actions", 1.5), ("workloads", 0.5)):
            table = Table(what, [Library(TORCH, "torch"), Library(OURS, "torch", README.parent)])
            table.add({"one": summary({TORCH: [1e-6], OURS: [ratio * 1e-6]}, {})})
            table.end(worse=(1.2, 2.0))
    return out.getvalue().splitlines()


def test_what_is_printed_is_read() -> None:
    text = figures.markdown(printed(), RANKS, {"tritensor": (8, 110), "torch": (700, 740)}, "made so")
    assert text.startswith("made so\n")
    for row in (
        "| its own files | 8 MB | 700 MB |", "| import | 180 ms | 900 ms |", "| `x + y` | 2.00 us | 4.00 us | 0.50 |",
        "| geometric mean of eleven such calls |  |  | 0.91 |", "| geometric mean of 84 calls of small programs |  |  | 1.50 |",
        "| geometric mean of 12 programs of small ops |  |  | 0.50 |", "| 28 different calls one after another, as a program makes them | 1.00 us | 2.00 us | 0.50 |",
        "| the same with Adam | 0.50 | 0.50 |", "| `x.mul_(0.5)`, in place | 1.00 us | 4.00 us | 0.25 |",
        "340 functions on a million elements take 0.74 of torch's time (geometric mean; the largest 2.0)",
        "`DistributedDataParallel` takes 0.50 of torch's time, under `ZeroRedundancyOptimizer` 0.40, under `fully_shard` 0.25; `all_reduce` 0.05 to 0.25.",
        "host cost of an eager op on device cuda (Stub H100), 4 x 3 float32",
    ):  # fmt: skip
        assert row in text, f"{row}\n{text}"


def test_a_loud_machine_is_told() -> None:
    assert "not quiet" in figures.circumstances(1.5, quick=True)
    said = figures.circumstances(0.1, quick=False)
    assert "not quiet" not in said
    assert "on which others kept 0.1 cores busy" in said


def test_a_line_that_was_not_printed_is_named() -> None:
    said = printed() | {"train2": ""}
    with pytest.raises(KeyError, match="LeNet"):
        figures.markdown(said, RANKS, {"tritensor": (8, 110), "torch": (700, 740)}, "")


def test_lines_that_the_readme_shows_are_timed() -> None:
    source = Path(host.__file__).with_name("device_host.py").read_text()
    assert [label for label in figures.ON_DEVICE if f'"{label}"' not in source] == []
    means = {f"geometric mean of {of}" for of in ("these eleven", "the actions", "the workloads")}
    assert set(figures.ON_CPU) <= {*host.ELEVEN, sequence.TOGETHER, *means}
    assert set(figures.STEPS) <= {label for label, *_ in train.STEPS}


def test_sizes_are_of_files() -> None:
    assert {"tritensor", "numpy", "ml-dtypes", "cuda-python"} <= figures.needed("tritensor")
    assert "triton" not in figures.needed("tritensor")
    assert 2e6 < figures.own_bytes("tritensor") < 50e6
    assert figures.own_bytes("numpy") > 10e6


def test_every_figure_of_the_readme_is_of_one_run() -> None:
    text = README.read_text()
    kept = text.partition(figures.BEGIN)[2].partition(figures.END)[0]
    assert re.match(r"\n`python -m bench readme( --quick)? --write`, \d{4}-\d\d-\d\d, commit \w+", kept)
    rest = text.replace(kept, "")
    assert not re.findall(r"[\d.]+ (?:us|ms)\b|0\.\d\d of torch", rest), "a time outside of the section is of another run"
