"""The static report's table and rules, without compiling: what is a regression, what is not, and that the committed tables read."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.static import command as static
from bench.static import table as static_table
from bench.static.launches import Launch
from bench.static.table import Uses, compare, parse, regressions
from tritensor.cuda.compiler import child_processes
from tritensor.cuda.compiler.kernel_report import Report
from tritensor.cuda.compiler.occupancy import LIMITS, occupancy

TABLES = sorted(static_table.RESULTS.glob("static-triton-*.json"))
WAS = "32r 16/16 16x4"


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (WAS, "error: ptxas", "does not compile any more"),
        (WAS, "32r 16/16 16x4 spill:8", "spills 8 bytes, was 0"),
        ("255r 16/16 2x4 spill:8", "255r 16/16 2x4 spill:12", "spills 12 bytes, was 8"),
        (WAS, "32r 8/16 16x4", "widest load 8 bytes, was 16"),
        (WAS, "32r 16/2 16x4", "widest store 2 bytes, was 16"),
        (WAS, "32r 16/- 16x4", "widest store 0 bytes"),
        (WAS + " code:20", "32r 16+4x4/16 16x4 code:20", "loads 16+4x4, was 16: more bytes below 16 at a time"),
        ("32r 4x16/8x16 16x4 code:20", "32r 4x16/6x16+8x4 16x4 code:20", "stores 6x16+8x4, was 8x16"),
        ("32r 4x8/2 16x4 loop:40 in:4x8", "32r 4x8+2/2 16x4 loop:41 in:4x8+2", "loads in the loop 4x8+2, was 4x8: 1 below 8 bytes, was 0"),
        ("32r 4x8/2 16x4 loop:40 in:8+2", "32r 4x8/2 16x4 loop:40 in:8+2x2", "2 below 8 bytes, was 1"),
        (WAS + " loop:40 in:16", WAS + " loop:47 in:16", "loop of 47 instructions, was 40"),
        (WAS + " code:200", WAS + " code:231", "code of 231 instructions, was 200"),
        (WAS + " wgmma:8", WAS + " mma:8", "no wgmma any more, had 8"),
        (WAS + " tcgen05:1", WAS, "no tcgen05 any more"),
        (WAS + " tma:2", WAS + " cp.async:8", "no tma any more"),
        (WAS + " cp.async:8", WAS, "no cp.async any more"),
        (WAS, "40r 16/16 12x4", "40 registers, was 32"),
        ("96r 16/16 5x4", "112r 16/16 3x4 shared:70000", "3 blocks of 4 warps on a multiprocessor, was 5 of 4"),
        (WAS, "32r 16/16 6x4 shared:32768", "6 blocks of 4 warps"),
        (WAS, "32r 16/16 32x1", "32 blocks of 1 warps"),
    ],
)
def test_what_is_worse(was: str, now: str, said: str) -> None:
    found = regressions(90, parse(was), parse(now))
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (WAS, WAS),
        (WAS + " loop:40 in:16", WAS + " loop:46 in:16"),  # 15 %
        (WAS + " loop:16", WAS + " loop:19"),  # three instructions
        (WAS + " code:20", WAS + " code:35"),
        (WAS + " code:200", WAS + " loop:300"),  # another form of the same
        ("32r 8x16/8x16 16x4 code:20", "32r 8x16+4/8x16 16x4 code:21"),  # a scalar, once
        (WAS, "32r 16+4x4/16 16x4 code:20"),  # only the widest is known of what was
        ("32r 16+4/16 16x4 loop:40 in:16+4", "32r 2x16/16 16x4 loop:40 in:2x16"),
        (WAS, "38r 16/16 16x4"),  # 18 % more
        ("16r 16/16 16x4", "22r 16/16 16x4"),  # many per cent of few registers
        ("96r 16/16 5x4", "104r 16/16 4x4"),  # one step down
        ("8r 4/4 16x4 spill:8", "8r 16/16 16x4"),  # better
        (WAS + " wgmma:8", WAS + " wgmma:4"),  # fewer of them is a smaller tile
        (WAS + " cp.async:8", WAS + " tma:2"),
        (WAS, WAS + " wgmma:8"),
        ("error: ptxas", "255r 2/2 1x4 spill:800"),  # it compiles now; faults() speaks of the spill
    ],
)
def test_what_is_not_worse(was: str, now: str) -> None:
    assert regressions(90, parse(was), parse(now)) == []


def test_the_step_follows_from_the_register_unit() -> None:
    """The two occupancies of the tests above are those that the formula gives."""
    assert occupancy(90, 96, 0, 4) == (5, 20)
    assert occupancy(90, 104, 0, 4) == occupancy(90, 112, 0, 4) == (4, 16)


# (architecture, registers, shared bytes, warps of a block, blocks): answers of cudaOccMaxActiveBlocksPerMultiprocessor, CUDA 13.0
NVIDIA = [
    (80, 16, 0, 4, 16), (80, 255, 0, 4, 2), (80, 255, 0, 8, 1), (80, 255, 0, 16, 0), (80, 64, 0, 8, 4), (80, 65, 0, 8, 3),
    (80, 32, 49152, 4, 3), (80, 32, 166912, 4, 1), (80, 32, 166913, 4, 0), (90, 32, 49152, 4, 4), (90, 32, 115712, 4, 2),
    (90, 32, 115713, 4, 1), (90, 32, 232448, 4, 1), (90, 32, 232449, 4, 0), (100, 168, 0, 4, 3), (100, 40, 0, 1, 32),
    (100, 128, 65536, 8, 2), (100, 24, 0, 32, 2),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "registers", "shared", "warps", "blocks"), NVIDIA)
def test_occupancy_is_that_of_the_toolkit(arch: int, registers: int, shared: int, warps: int, blocks: int) -> None:
    assert occupancy(arch, registers, shared, warps) == (blocks, blocks * warps)


def test_occupancy_counts_tensor_memory() -> None:
    assert occupancy(100, 32, 0, 4, tensor_memory=256).blocks == 2
    assert occupancy(100, 32, 0, 4, tensor_memory=513).blocks == 0


def test_a_report_becomes_a_cell_and_back() -> None:
    report = Report(
        "k", 90, 168, 0, 0, 98304, 8, 0, loads={"32": 3}, stores={"128": 4, "16": 1},
        tensor={"wgmma.mma_async": 8}, bulk={"cp.async 128": 12, "cp.async.bulk.tensor": 2},
        instructions=500, loop=80, loop_loads={"64": 1, "128": 4},
    )  # fmt: skip
    cell = static_table.uses(report)
    assert str(cell) == "168r 3x4/4x16+2 1x8 loop:80 in:4x16+8 shared:98304 wgmma:8 cp.async:12 tma:2"
    assert parse(str(cell)) == cell
    assert static_table.uses(Report("k", 90, 10, 0, 0, 0, 4, 0, instructions=9)) == parse("10r -/- 16x4 code:9")
    assert (parse("8r 2x16+4/- 16x4").load, parse("8r 2x16+4/- 16x4").store) == (16, 0)
    assert parse("error: no: 3") == Uses(error="no: 3")
    assert parse(str(static_table.uses(report, "0a1b"))).sources == "0a1b"
    with pytest.raises(ValueError, match="is not what the static table holds"):
        parse("32 registers")


def test_the_comparison_names_what_is_new_and_gone() -> None:
    table = {
        "a forward float32 size0 _k": {90: parse(WAS)},
        "b forward float32 size0 _k": {90: parse(WAS)},
        "c forward float16 size0 _k": {90: parse(WAS)},
    }
    run = {"a forward float32 size0 _k": {90: parse("30r 16/16 16x4"), 100: parse(WAS)}}
    found = compare(table, run, list(run), lambda key: "float32" in key)
    assert found.worse == []
    assert found.compared == found.changed == 1
    assert found.new == ["a forward float32 size0 _k sm_100"]
    assert found.gone == ["b forward float32 size0 _k"], "c is none of this run's business"
    assert set(static.updated(table, run, found.gone)) == {"a forward float32 size0 _k", "c forward float16 size0 _k"}


def test_a_table_that_lies_of_the_same_sources_is_told() -> None:
    row = "a forward float32 size0 _k"
    table, run = {row: {90: parse(WAS + " @0a")}}, {row: {90: parse("30r 16/16 16x4 @0a")}}
    assert "not what the table read from these very sources" in compare(table, run, [row]).worse[0]
    for now in ("30r 16/16 16x4 @0b", "30r 16/16 16x4", WAS + " @0a", WAS + " @0b"):
        assert compare(table, {row: {90: parse(now)}}, [row]).worse == []


def test_what_the_table_has_read_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same sources, and with another table another few are compiled all the same."""
    monkeypatch.setattr(static, "sources", lambda launch, arch: f"{launch.number:04x}")
    monkeypatch.setattr(static, "facts", lambda launch, arch: {"key": launch.key, "arch": arch})
    many = range(1, 1000)
    kernel = SimpleNamespace(__name__="_k")
    launches: list[Any] = [Launch("a", "forward", "float32", "size0", n, SimpleNamespace(kernel=kernel)) for n in many]  # type: ignore[arg-type]
    jobs = [(i, 90) for i in range(len(launches))]
    table = {one.key: {90: parse(f"{WAS} @{one.number:04x}")} for one in launches}
    asked = static.known(launches, jobs, table)
    assert asked[next(iter(asked))]["uses"].startswith(WAS)
    assert 0.9 < len(asked) / len(jobs) < 1
    again = static.known(launches, jobs, {**table, "b forward float32 size0 _k": {90: parse(WAS + " @ff")}})
    assert again.keys() != asked.keys()
    first = next(iter(asked))[0]
    for changed in (parse(WAS + " @ffff"), parse(WAS), parse("error: no")):
        assert (first, 90) not in static.known(launches, jobs, {**table, launches[first].key: {90: changed}})
    assert not static.known(launches, jobs, {})


def test_a_table_that_lacks_most_is_no_check() -> None:
    run = {f"op{i} forward float32 size0 _k": {90: parse(WAS)} for i in range(10)}
    kernels = [{"key": key, "arch": 90} for key in run]
    found = compare({}, run, list(run))
    _, worse = static.verdict(found, kernels, filtered=False)
    assert worse == ["the table lacks 10 of 10 kernels: it checks too little"]
    assert static.verdict(found, kernels, filtered=True)[1] == []


def test_there_are_tables() -> None:
    assert {p.name for p in TABLES} >= {"static-triton-3.6.json", "static-triton-3.9.json"}


@pytest.mark.parametrize("path", TABLES, ids=lambda p: p.stem)
def test_a_committed_table_reads_and_is_in_order(path: Path) -> None:
    text = path.read_text()
    table = static_table.load(path)
    assert list(table) == sorted(table)
    assert {arch for cells in table.values() for arch in cells} == set(LIMITS)
    assert len(text.splitlines()) == len(table) + 9, "a line for each kernel"
    assert len(text) < 1_000_000
    head = json.loads(text)
    assert path.name == static_table.path_for(head["triton"]).name
    assert not [key for key, cells in table.items() for u in cells.values() if u.error]


def spilling(path: Path) -> set[tuple[str, str, str, str, int]]:
    """What spills by a committed table, as SPILLS would name it."""
    version = path.stem.removeprefix("static-triton-")
    cells = [(key.split(), arch, u) for key, row in static_table.load(path).items() for arch, u in row.items()]
    return {(version, op, corner, dtype, arch) for (op, corner, dtype, *_), arch, u in cells if u.spill}


def test_every_spill_has_a_reason_and_every_reason_a_spill() -> None:
    found = {s for path in TABLES for s in spilling(path)}
    assert found == static.SPILLS.keys()


def test_saving_a_table_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    rows = {"b k": {100: parse(WAS), 90: parse(WAS)}, "a k": {90: parse(WAS + " spill:8")}}
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    static_table.save(one, rows, "3.9.0", 7)
    static_table.save(two, static_table.load(one), "3.9.0", 7)
    assert one.read_bytes() == two.read_bytes()
    assert static_table.load(one) == rows
    static_table.save(one, rows, "3.9.0", None)
    assert one.read_bytes() == two.read_bytes(), "None keeps the number of launches"


def test_forked_jobs_all_answer() -> None:
    jobs = list(range(100))
    assert dict(child_processes.each(lambda n: n * n, jobs, 3)) == {n: n * n for n in jobs}


def test_a_process_that_dies_costs_one_job() -> None:
    import os

    def work(n: int) -> int:
        if n in (3, 4, 60):
            os._exit(7)
        return n

    found = dict(child_processes.each(work, range(70), 2))
    assert {n for n, answer in found.items() if isinstance(answer, child_processes.Died)} == {3, 4, 60}
    assert "exit code 7" in str(found[3])
    assert all(found[n] == n for n in found if n not in (3, 4, 60))
    assert len(found) == 70


def test_progress_without_tqdm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(static.progress(iter("abc"), 3)) == ["a", "b", "c"]
    assert "3 of 3 kernels" in capsys.readouterr().err
