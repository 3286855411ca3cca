"""Types beyond those that ops' records claim (float8, small and unsigned integers, bool) compile too."""

from __future__ import annotations

import pytest

from tests.static.test_compile import alone

pytestmark = pytest.mark.static


@pytest.mark.parametrize("options", [("--changed",), pytest.param((), marks=pytest.mark.full)], ids=["changed", "all"])
def test_every_type_that_an_op_takes_compiles(options: tuple[str, ...]) -> None:
    done = alone("tests.static.every_type", *options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(done.stdout.rpartition("of ")[2].split()[0]) > 500, done.stdout
