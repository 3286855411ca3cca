"""A rank that dies, hangs or disagrees: every other one raises, and names rank, op and line."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from tests.distributed.ranks import run

ALL_REDUCE = r"all_reduce \(call {call} of default_pg, .*faulty.py:\d+\)"


def said(fault: str, *args: str, **more: str) -> dict[int, str]:
    """What each of three ranks said."""
    with tempfile.TemporaryDirectory() as folder:
        done = run("faulty.py", 3, fault, *args, options=("-disable-auto-cleanup",), seconds=120, SAID=folder, **more)
    found = re.findall(r"^rank (\d) (.*)$", done.stdout, re.M)
    assert found, f"no rank said a word: {done.stderr}"
    return {int(rank): text for rank, text in found}


@pytest.mark.parametrize(("fault", "call"), [("died", 1), ("late_death", 81)])
def test_a_rank_that_dies(fault: str, call: int) -> None:
    got = said(fault)
    assert got.keys() == {0, 2}
    for rank in (0, 2):
        assert re.match(r"RankFailedError \[1\]: " + ALL_REDUCE.format(call=call) + r": rank 1 \(pid \d+ on .*\) has ended", got[rank]), got


@pytest.mark.parametrize(
    ("fault", "op", "call"),
    [("hangs", "all_reduce", 1), ("hangs_in_message", "recv", 1), ("hangs_behind", "all_reduce", 1), ("late", "all_reduce", 81)],
)
def test_a_rank_that_hangs(fault: str, op: str, call: int) -> None:
    got = said(fault)
    for rank in (0, 2):
        where = rf"RankFailedError \[1\]: {op} \(call {call} of default_pg, .*faulty.py:\d+\)"
        assert re.match(where + r": rank 1 \(pid \d+ on .*\) did not come", got[rank]), got
    assert "did not come within 2 s" in got[0] + got[2]


def test_a_wait_says_how_long_it_was() -> None:
    got = said("hangs_longer")
    assert got.keys() == {0, 2}
    assert "did not come within 3 s" in got[0] + got[2], got


@pytest.mark.parametrize(
    ("fault", "one", "others"),
    [
        ("other_op", r"broadcast float32 \(4,\) from 0", r"all_reduce float32 \(4,\) SUM"),
        ("other_shape", r"all_reduce float32 \(5,\) SUM", r"all_reduce float32 \(4,\) SUM"),
        ("other_type", r"all_reduce float64 \(4,\) SUM", r"all_reduce float32 \(4,\) SUM"),
    ],
)
def test_ranks_that_disagree(fault: str, one: str, others: str) -> None:
    got = said(fault)
    assert got.keys() == {0, 1, 2}
    for text in got.values():
        line = r" at .*faulty.py:\d+"
        assert re.match(
            rf"DistError \[\]: call 1 of default_pg is not the same on all ranks: rank 1: {one}{line}; ranks 0, 2: {others}{line}", text
        ), got


def test_ranks_that_disagree_later() -> None:
    """After the first calls the timeout tells, or, where every call is compared, the comparison."""
    got = said("other_order_later")
    assert re.search(r"rank 1 is in broadcast \(call 81 of default_pg, .*faulty.py:\d+\)", got[0]), got
    assert re.search(r"rank 1 is in broadcast \(call 81", got[2]), got
    got = said("other_order_later", TRITENSOR_DISTRIBUTED_DEBUG="DETAIL")
    for text in got.values():
        assert text.startswith("DistError []: call 81 of default_pg is not the same on all ranks: rank 1: broadcast"), got


def test_an_exception_that_nobody_catches_ends_all(tmp_path: Path) -> None:
    """Under mpiexec alone, without the launcher, which the others would outwait otherwise."""
    done = run("faulty.py", 3, "uncaught", seconds=120, SAID=str(tmp_path))
    assert done.returncode != 0
    assert "KeyError: 'nobody catches this'" in done.stderr
    assert "MPI_Abort" in done.stderr


def test_a_group_that_failed_stays_so() -> None:
    got = said("again")
    assert re.match(r"RankFailedError \[1\]: all_reduce: the group is of no more use since rank 1 .* did not come", got[0]), got


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("absent", r"RankFailedError \[\]: init_process_group: not all processes that were started together have started MPI within 2 s"),
        ("absent_later", r"RankFailedError \[1\]: init_process_group: rank 1 did not come within 5 s"),
        ("forked", r"DistError \[\]: all_reduce: this process was forked after init_process_group"),
        ("forked_anew", r"DistError \[\]: init_process_group: this process was forked from one that has started MPI"),
        ("wrong_device", r"DeviceError \[\]: all_reduce: the tensor is on cuda:0, and the group's backend 'mpi' is for cpu"),
        ("other_size", r"DistError \[\]: init_process_group: world_size is 2, and MPI has started 3 processes; start them together"),
        ("other_version", r"DistError \[\]: init_process_group: rank 1 has versions of tritensor and Python of its own"),
        ("other_script", r"DistError \[\]: init_process_group: rank 1 has a program of its own, other.py"),
        ("unknown_backend", r"NotImplementedError \[\]: init_process_group: backend 'ucc' is not in tritensor"),
        ("captured", r"CaptureError \[\]: all_reduce \(.*faulty.py:\d+\): communicates, which no replay would do again"),
        ("negative_tag", r"ArgumentError \[\]: isend .*: tag -1 is not between 0 and"),
        (
            "parts",
            r"ShapeError \[\]: all_gather_into_tensor: output_tensor \(5,\) holds 5 elements, input_tensor \(2,\) holds 2: for 3 processes",
        ),
        ("not_root", r"ArgumentError \[\]: gather: argument gather_list must NOT be specified on non-destination ranks"),
        ("float8", r"DTypeError \[\]: all_reduce: float8_e5m2 is a type for storage"),
        ("no_order", r"DTypeError \[\]: all_reduce: MAX asks for an order, and complex numbers"),
        ("unfitting_split", r"ShapeError \[\]: all_to_all_single: input \(4,\): its first dimension does not divide into 3 parts"),
    ],
)
def test_what_is_wrong_is_told(fault: str, text: str) -> None:
    got = said(fault, TRITON_INTERPRET="1")
    assert re.match(text, got[0]), got
