"""Every element type in functions that make and move elements: the same type and the same values on both devices."""

from __future__ import annotations

import pytest

import tritensor as tt

TYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64",
    "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip
# D is the type, on the device, x holds 1 0 2 3 of it.
EXPRESSIONS = [
    "T.zeros(2, 3, dtype=D, device=on)", "T.full((2,), 1, dtype=D, device=on)", "T.tensor([1, 0, 2], device=on).to(D)", "x.float()", "x.to(T.int32)",
    "T.full_like(x, 1)", "x.new_zeros(2)", "T.cat((x, x))", "T.stack((x, x), 1)", "x[1:3]", "x[T.tensor([3, 0], device=on)]", "x.reshape(2, 2).t().contiguous()", "x.flip(0)", "x.roll(1)", "x.view(T.uint8)",
    "x.repeat(2)", "x.reshape(2, 2).tril()", "T.diag(x)", "x.clone().fill_(0)", "x.clone().copy_(T.ones(4, device=on))", "T.where(T.tensor([True, False, True, True], device=on), x, T.zeros_like(x))",
    "x.unfold(0, 2, 1).clone()", "x.as_strided((2, 2), (1, 1), 1).clone()", "x.repeat_interleave(2)", "x.diagflat(1)", "T.block_diag(x, x.reshape(2, 2))", "T.combinations(x)", "T.cartesian_prod(x, x[:2])", "x.clone().resize_(2, 3)[:1]",
    "x.reshape(2, 2).rot90()", "x.narrow(0, 1, 2)", "x.index_select(0, T.tensor([1], device=on))", "x.masked_fill(T.tensor([True, False, True, False], device=on), 1)", "T.empty_strided((2, 2), (1, 2), dtype=D, device=on).copy_(x.view(2, 2))",
]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_both_devices_agree(name: str) -> None:
    for e in EXPRESSIONS:
        found = []
        for on in ("cpu", "cuda"):
            x = tt.tensor([1, 0, 2, 3]).to(getattr(tt, name)).to(on)
            y = eval(e, {"T": tt, "D": getattr(tt, name), "x": x, "on": on})
            assert y.device.type == on, e
            found.append((y.dtype, tuple(y.shape), y.stride(), y.cpu().to(tt.float64).tolist()))
        assert found[0] == found[1], e


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_sequences_of_large_unsigned_types(name: str) -> None:
    kind = getattr(tt, name)
    for on in ("cpu", "cuda"):
        assert tt.arange(2, 9, 3, dtype=kind, device=on).tolist() == [2, 5, 8]
        assert tt.linspace(0, 6, 4, dtype=kind, device=on).tolist() == [0, 2, 4, 6]
        assert tt.full((1,), tt.iinfo(kind).max, dtype=kind, device=on).tolist() == [tt.iinfo(kind).max]


def test_uint64_beyond_float64_is_exact() -> None:
    assert tt.cat((tt.tensor([2**64 - 1], dtype=tt.uint64), tt.tensor([2**63 + 1], dtype=tt.uint64))).tolist() == [2**64 - 1, 2**63 + 1]


def test_float8_promotes_with_nothing() -> None:
    x = tt.ones(2).to(tt.float8_e5m2)
    for other in (tt.ones(2), tt.ones(2, dtype=tt.int8), tt.ones(2).to(tt.float8_e4m3fn)):
        with pytest.raises(tt.DTypeError, match="no common type"):
            tt.cat((x, other))
