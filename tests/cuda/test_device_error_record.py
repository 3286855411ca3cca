"""The record of errors on a device under the sanitizer: what programs may share, and what it must not hide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from tritensor.cuda.emulator.sanitizer import SanitizerError
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime.active import runtime
from tritensor.ground import device_errors
from tritensor.ground.device import device
from tritensor.kernels.parts.indices.error_reports import first, report, watch
from tritensor.ops.array import CudaArray, empty, from_host, to_host

GPU = device("cuda", 0)


def record(on: int = 0) -> list[int]:
    """The error record as it stands."""
    address = runtime().error_storage(on).pointer
    return list((device_errors.ctypes.c_int64 * device_errors.FIELDS).from_address(address))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Each test starts without a record and leaves none."""
    assert record()[0] == 0
    yield
    left = record()[0]
    if left:
        with pytest.raises(IndexError):
            runtime().check_errors(0)
    assert left == 0


# the record under the sanitizer, and what it must not hide
@triton.jit
def _look(x, n, bad, errors, site, BLOCK: tl.constexpr):
    found = first(bad, BLOCK)
    if found < BLOCK:
        i = tl.program_id(0) * BLOCK + found
        report(errors, site, tl.load(x + i), i, n)


@triton.jit
def _checked(x, n, errors, site, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    _look(x, n, (i < n) & (value != 0), errors, site, BLOCK)


@triton.jit
def _unclaimed(errors):
    tl.store(errors + 1, 5)


@triton.jit
def _steals(errors, site):
    tl.atomic_cas(errors, site * 0, -site)
    tl.store(errors + 1, tl.program_id(0))


@triton.jit
def _reads(errors, y):
    tl.store(y + tl.program_id(0), tl.load(errors))


@triton.jit
def _races_beside(x, y, n, errors, site, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    _look(x, n, (i < n) & (value != 0), errors, site, BLOCK)
    tl.store(y + i * 0 + tl.program_id(0) * 0, tl.program_id(0) + i * 0)


@triton.jit
def _loads_beside(x, n, errors, site, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    _look(x, n, (i < n) & (value != 0), errors, site, BLOCK)
    tl.store(x + i, tl.load(x + (i + BLOCK) % n, mask=i < n, other=0), mask=i < n)


def _wording(name: str, value: int, position: int, bound: int) -> str:
    return f"{name}: {value} {position} {bound}"


def _array(values: Any) -> CudaArray:
    found = from_host(np.asarray(values), GPU)
    assert isinstance(found, CudaArray)
    return found


def _cleared() -> None:
    address = runtime().error_storage(0).pointer
    (device_errors.ctypes.c_int64 * device_errors.FIELDS).from_address(address)[:] = [0] * device_errors.FIELDS


def test_programs_share_the_record() -> None:
    x = np.zeros(64, np.int32)
    x[[20, 21, 50]] = [4, 5, 6]
    d = _array(x)
    launch(_checked, (4,), d, 64, *watch("gather", d, _wording, "probe"), BLOCK=16)
    with pytest.raises(IndexError, match=r"probe: (4 20|6 50) 64 "):
        to_host(d)


def test_writing_without_a_claim_is_caught() -> None:
    d = _array(np.zeros(4, np.int32))
    errors, site = watch("gather", d, _wording, "probe")
    try:
        with pytest.raises(SanitizerError, match=r"_unclaimed: program \(0, 0, 0\): writes to an error record that it has not claimed"):
            launch(_unclaimed, (1,), errors)
        with pytest.raises(SanitizerError, match=r"_steals: .* has not claimed"):
            launch(_steals, (2,), errors, site)
        with pytest.raises(SanitizerError, match=r"_reads: .* loads an error record"):
            launch(_reads, (2,), errors, empty((2,), np.dtype(np.int64), GPU))
    finally:
        _cleared()


@pytest.mark.parametrize("bad", [False, True])
def test_other_races_are_still_caught_beside_a_report(bad: bool) -> None:
    x = np.zeros(64, np.int32)
    x[:: 7 if bad else 64] = bad
    d = _array(x)
    watching = watch("gather", d, _wording, "probe")
    try:
        with pytest.raises(SanitizerError, match=r"stores to y\[0\], which program \(\d+, \d+, \d+\) of this launch stored to"):
            launch(_races_beside, (4,), d, empty((64,), np.dtype(np.int32), GPU), 64, *watching, BLOCK=16)
        with pytest.raises(SanitizerError, match=r"x\[\d+\], which program \(\d+, \d+, \d+\) of this launch"):
            launch(_loads_beside, (4,), d, 64, *watching, BLOCK=16)
    finally:
        _cleared()
