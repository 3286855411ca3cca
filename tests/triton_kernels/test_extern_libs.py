"""`kernel[grid](..., extern_libs={name: file})`: libraries of device code that are linked into a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton.language.extra import libdevice

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.ground.errors import LaunchError

LIBDEVICE = str(Path(triton.__file__).parent / "backends" / "nvidia" / "lib" / "libdevice.10.bc")


@triton.jit
def arcsine(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, libdevice.asin(tl.load(x + i)))


@on_stub()
def test_a_library_by_its_file_is_linked() -> None:
    x = tt.full((16,), 0.5, device="cuda")
    y = tt.empty_like(x)
    for _ in range(2):
        made = arcsine[(1,)](x, y, BLOCK=16, extern_libs={"libdevice": LIBDEVICE})
        (launch,) = [one for one in control.launches() if one.name == "arcsine"][-1:]
        assert launch.values[:2] == (x.data_ptr(), y.data_ptr())
    assert ".extern .func" not in made.asm["ptx"]
    with pytest.raises(LaunchError, match=r"arcsine.* does not compile: FileNotFoundError: .*nowhere\.bc"):
        arcsine[(1,)](x, y, BLOCK=16, extern_libs={"libdevice": f"{LIBDEVICE}.nowhere.bc"})


def test_emulated_it_changes_nothing() -> None:
    x = tt.full((16,), 0.5, device="cuda")
    y = tt.empty_like(x)
    arcsine[(1,)](x, y, BLOCK=16, extern_libs={"libdevice": LIBDEVICE})
    assert tt.allclose(y, tt.asin(x))
