"""The named matrix products, tensordot and einsum against numpy, their gradients, and their refusals."""

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import ShapeError

rng = np.random.default_rng(10)


def pair(*shapes):
    arrays = [rng.standard_normal(s) for s in shapes]
    return arrays, [tt.from_numpy(a) for a in arrays]


def same(found, expected):
    assert tuple(found.shape) == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("mm", [(3, 4), (4, 2)], lambda a, b: a @ b),
        ("mv", [(3, 4), (4,)], lambda a, b: a @ b),
        ("bmm", [(2, 3, 4), (2, 4, 5)], lambda a, b: a @ b),
        ("dot", [(4,), (4,)], np.dot),
        ("vdot", [(4,), (4,)], np.dot),
        ("inner", [(2, 4), (3, 4)], np.inner),
        ("outer", [(3,), (4,)], np.outer),
        ("ger", [(3,), (4,)], np.outer),
        ("matmul", [(2, 1, 3, 4), (5, 4, 2)], np.matmul),
        ("addmm", [(2,), (3, 4), (4, 2)], lambda c, a, b: c + a @ b),
        ("addmv", [(3,), (3, 4), (4,)], lambda c, a, b: c + a @ b),
        ("addr", [(3, 4), (3,), (4,)], lambda c, a, b: c + np.outer(a, b)),
        ("baddbmm", [(2, 3, 5), (2, 3, 4), (2, 4, 5)], lambda c, a, b: c + a @ b),
        ("addbmm", [(3, 5), (2, 3, 4), (2, 4, 5)], lambda c, a, b: c + (a @ b).sum(0)),
        ("chain_matmul", [(2, 3), (3, 4), (4, 5)], lambda a, b, c: a @ b @ c),
    ],
)
def test_named_products(name, shapes, expected):
    arrays, tensors = pair(*shapes)
    same(getattr(tt, name)(*tensors), expected(*arrays))


def test_scaled_sums():
    (c, a, b), (tc, ta, tb) = pair((3, 2), (3, 4), (4, 2))
    same(tt.addmm(tc, ta, tb, beta=0.5, alpha=2), 0.5 * c + 2 * (a @ b))
    nan = tt.from_numpy(np.full((3, 2), np.nan))
    same(tt.addmm(nan, ta, tb, beta=0), a @ b)  # beta 0 does not read its input
    held = tt.from_numpy(c.copy())
    held.addmm_(ta, tb)
    same(held, c + a @ b)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij->ij", [(3, 3, 2)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]),
        ("ij,k->jk", [(2, 3), (4,)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("i...->...", [(3, 2, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("abi,kij,abj->abk", [(2, 3, 4), (5, 4, 6), (2, 3, 6)]),
    ],
)
def test_einsum(equation, shapes):
    arrays, tensors = pair(*shapes)
    same(tt.einsum(equation, *tensors), np.einsum(equation, *arrays))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ki", [(3, 4), (4, 5)]),
        ("bij,bkj->kbi", [(2, 3, 4), (2, 5, 4)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
        ("ij,kj,lk->li", [(2, 3), (4, 3), (5, 4)]),
        ("ij,ij->ji", [(2, 3), (2, 3)]),
        ("...ij,jk->k...i", [(2, 2, 3), (3, 4)]),
        ("ij,k->jki", [(2, 3), (4,)]),
    ],
)
def test_a_product_of_several_operands_lies_in_c_order(equation, shapes, device):
    arrays, tensors = pair(*shapes)
    y = tt.einsum(equation, *[t.to(device) for t in tensors])
    assert y.is_contiguous()
    same(y.view(-1).cpu(), np.einsum(equation, *arrays).reshape(-1))


def test_einsum_has_gradients():
    (a, b), (ta, tb) = pair((2, 3, 4), (2, 4, 5))
    ta.requires_grad = tb.requires_grad = True
    tt.einsum("bij,bjk->bik", ta, tb).sum().backward()
    same(ta.grad, np.broadcast_to(b.sum(2)[:, None, :], a.shape))
    same(tb.grad, np.broadcast_to(a.sum(1)[:, :, None], b.shape))


@pytest.mark.parametrize("dims", [1, 2, ([1, 0], [0, 1]), ([-1], [1])])
def test_tensordot(dims):
    (a, b), (ta, tb) = (
        pair((3, 4, 3, 4), (3, 4, 3, 4))
        if isinstance(dims, int) and dims == 2
        else pair((3, 4), (4, 3))
        if dims != ([-1], [1])
        else pair((3, 4), (2, 4))
    )
    same(tt.tensordot(ta, tb, dims), np.tensordot(a, b, dims))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tt.mm(tt.ones(2, 3, 4), tt.ones(4, 2)), r"mm: input \(2, 3, 4\) has 3 dimensions; it must have 2"),
        (lambda: tt.bmm(tt.ones(2, 3, 4), tt.ones(3, 4, 2)), r"bmm: input \(2, 3, 4\), mat2 \(3, 4, 2\): the batches 2 and 3 differ"),
        (lambda: tt.dot(tt.ones(3), tt.ones(4)), r"dot: input \(3,\) @ tensor \(4,\): input's last size 3 is not tensor's first 4"),
        (lambda: tt.tensordot(tt.ones(2, 3), tt.ones(4, 2), 1), r"tensordot: .* the sizes \[3\] and \[4\] differ"),
        (lambda: tt.einsum("ij,jk", tt.ones(2, 3), tt.ones(4, 5)), r"einsum: 'ij,jk': 'j' is 3 in one operand and 4 in another"),
        (lambda: tt.einsum("ijk->i", tt.ones(2, 3)), r"einsum: 'ijk' names 3 dimensions, its operand \(2, 3\) has 2"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ShapeError, match=message):
        call()


@pytest.mark.parametrize("equation", ["ij->k", "ij->ii", "ij,jk->ik", "i1->i"])
def test_equations_that_cannot_be_read(equation):
    with pytest.raises(ValueError, match="einsum: "):
        tt.einsum(equation, tt.ones(2, 3))
