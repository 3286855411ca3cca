"""einsum of equations of every form against numpy's, in the order of a path and from left to right."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground import shortcuts
from tritensor.tensor.functions.linear import einsum as module

SIZES = dict(zip("abcdefghijklmnq", (2, 3, 4, 2, 3, 2, 4, 3, 2, 3, 4, 2, 3, 2, 4), strict=True))
EQUATIONS = [
    "ij,jk->ik",
    "ij,kj->ik",
    "ji,jk->ki",
    "bij,bjk->bik",
    "bij,bjk->ijk",
    "ij->ji",
    "ij->",
    "ii->i",
    "ii->",
    "iij->j",
    "iij->ij",
    "ijij->ij",
    "ijji->",
    "i,i->",
    "i,j->ij",
    "i,j->ji",
    "ij,ij->ij",
    "ij,ij->i",
    "ij,ij->",
    "ij,j->i",
    "ij,i->j",
    "ij,j->ij",
    "ij,i->ij",
    "bij,bkj->bik",
    "bhqd,bhkd->bhqk",
    "bhqk,bhkd->bhqd",
    "bhqk,bhkd->bqhd",
    "abcd,cdef->abef",
    "abcd,bdaf->cf",
    "abc,cd,de->abe",
    "ab,bc,cd->ad",
    "ab,bc,ca->",
    "ab,bc,cd->da",
    "ab,ac,ad->bcd",
    "ab,ac,ad->a",
    "a,b,c->abc",
    "a,b,c->cba",
    "a,ab,b->",
    "ij,jk",
    "ba",
    "ji,ik,kl",
    "...ij,...jk->...ik",
    "...i,...i->...",
    "...i->...",
    "i...->...",
    "...ij->...ji",
    "...,...->...",
    "i...,i...->...",
    "b...,bj->j...",
    "ab...,bc...->ac...",
    "ii,jk->ijk",
    "iij,jkk->ik",
    "ijk,ijk->jk",
    "ijk,jil->kl",
    "ijk,ilm,njm,nlk,abc->",
    "abc,abd->cd",
    "ab,ab,ab->a",
    "ab,b,ab->ba",
    "abcde->ecabd",
    "a,a,a->a",
    "ab,cd->abcd",
    "abc,bad->abcd",
    "ea,fb,abcd,gc,hd->efgh",
    "ijk,k->ij",
    "ijk,jk->i",
    "aab,b->a",
    "...a,a->...",
    "ab,b...->a...",
    "i,->i",
    ",",
    "->",
    "...",
    "ij,kl,jl->ik",
]


def operands(equation: str) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    terms = equation.partition("->")[0].split(",")
    return [rng.standard_normal([n for c in t.replace("...", ".") for n in ((2, 3) if c == "." else (SIZES[c],))]) for t in terms]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_as_numpy_has_it(equation: str) -> None:
    arrays = operands(equation)
    expected = np.einsum(equation, *arrays, optimize=True)
    found = tt.einsum(equation, *[tt.from_numpy(np.asarray(x)) for x in arrays])
    assert tuple(found.shape) == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    whole = [np.asarray(np.rint(4 * x)).astype(np.int32) for x in arrays]
    found = tt.einsum(equation, *[tt.from_numpy(x) for x in whole])
    assert (found.dtype, found.tolist()) == (tt.int32, np.einsum(equation, *whole, optimize=True).tolist())


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in for opt_einsum, whose paths are numpy's and which notes what it is asked."""
    asked: list[str] = []
    stand_in = types.ModuleType("opt_einsum")

    def contract_path(equation: str, *shapes: tuple[int, ...], **given: bool) -> tuple[list[tuple[int, ...]], str]:
        assert given == {"shapes": True}
        asked.append(equation)
        return np.einsum_path(equation, *map(np.zeros, shapes), optimize="greedy")[0][1:], ""

    stand_in.contract_path = contract_path  # type: ignore[attr-defined]
    stand_in.get_symbol = lambda k: "abcdefghijklmnopqrstuvwxyz"[k]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opt_einsum", stand_in)
    monkeypatch.setattr(module, "_opt_einsum", lambda: stand_in)
    return asked


@pytest.mark.parametrize("equation", [e for e in EQUATIONS if e.count(",") > 1])
def test_in_the_order_of_a_path(equation: str, package: list[str]) -> None:
    arrays = operands(equation)
    with shortcuts.suspended():  # a plan asks for no path
        found = tt.einsum(equation, *[tt.from_numpy(x) for x in arrays])
    np.testing.assert_allclose(found.numpy(), np.einsum(equation, *arrays, optimize=True), rtol=1e-12, atol=1e-12)
    assert len(package) == 1


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,ij->i", "i,j,k->jki", "ii,ij->j"])
def test_sixteen_bits_are_summed_in_thirty_two(equation: str) -> None:
    arrays = [x.astype(np.float16) for x in operands(equation)]
    found = tt.einsum(equation, *[tt.from_numpy(x) for x in arrays])
    assert found.dtype is tt.float16
    np.testing.assert_allclose(found.float().numpy(), np.einsum(equation, *[x.astype(np.float64) for x in arrays]), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij->ii", [(3, 3)], "the output must name letters of the operands, each once"),
        ("ij,jk->ikz", [(2, 3), (3, 3)], "the output must name letters of the operands, each once"),
        ("i.j", [(2, 3)], "a term is letters and at most one ellipsis"),
        ("...ij...", [(2, 3)], "a term is letters and at most one ellipsis"),
        ("i1", [(2, 3)], "a term is letters and at most one ellipsis"),
        ("ij->ji->ij", [(2, 3)], "the output must name letters"),
        ("ijk", [(2, 3)], "names 3 dimensions, its operand"),
        ("i", [(2, 3)], "names 1 dimensions, its operand"),
        ("ii", [(2, 3)], "'i' stands twice at one operand, for sizes 2 and 3"),
        ("ii->i", [(1, 3)], "'i' stands twice at one operand, for sizes 1 and 3"),
        ("ij,ij", [(2, 3), (3, 3)], "'i' is 2 in one operand and 3 in another"),
        ("ij", [(2, 3), (2, 3)], "names 1 operands, 2 were given"),
        ("ij,ij", [(2, 3)], "names 2 operands, 1 were given"),
        ("ij", [], "names 1 operands, 0 were given"),
    ],
)
def test_refused(equation: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tt.einsum(equation, *[tt.ones(*s) for s in shapes])


def test_lists_of_numbers_for_letters() -> None:
    x, m = tt.ones(2, 3), tt.ones(3, 3)
    assert tt.einsum(x, [0, 1], m, [1, 2], [0, 2]).tolist() == (x @ m).tolist()
    assert tt.einsum(x, [Ellipsis, 1], [Ellipsis]).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match=r"52 in .* is no number from 0 to 51"):
        tt.einsum(x, [0, 52])
