"""vmap: dimensions, shapes inside, writes in place, random numbers, loops, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.func import debug_unwrap, grad, vmap


def drawn(*shape: int) -> tt.Tensor:
    return tt.from_numpy(np.asarray(np.random.default_rng(sum(shape)).standard_normal(shape)))


def close(a: Any, b: Any) -> None:
    assert a.shape == b.shape
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-10, 1e-12)


def test_dimensions_of_arguments_and_results() -> None:
    x, y = drawn(2, 3, 4), drawn(3)
    close(vmap(lambda a: a.sum(0), in_dims=1)(x), x.permute(1, 0, 2).sum(1))
    close(vmap(lambda a, b: a * b, in_dims=(1, 0), out_dims=-1)(x, y), (x.permute(1, 0, 2) * y[:, None, None]).permute(1, 2, 0))
    close(vmap(lambda d, b: d["u"] * b, in_dims=({"u": -1, "v": None}, None))({"u": x, "v": 3}, y[0]), x.permute(2, 0, 1) * y[0])
    first, (second,) = vmap(lambda a: (a, (a * 2,)), out_dims=(0, (1,)))(drawn(2, 3))
    assert first.shape == (2, 3)
    assert second.shape == (3, 2)
    assert tt.vmap is vmap


def test_functions_see_one_example() -> None:
    def f(a: tt.Tensor) -> tt.Tensor:
        assert (tuple(a.shape), a.ndim, a.size(-1), len(a), a.numel(), a.is_contiguous()) == ((2, 3), 2, 3, 2, 6, True)
        assert a.t().stride() == (1, 3)
        rows = [r.sum() for r in a]
        return tt.stack(rows) + a.view(-1)[:2] + a.reshape(3, -1).sum(0)

    x = drawn(5, 2, 3)
    close(vmap(f)(x), tt.stack([f(a) for a in x]))


def test_maps_nest_with_maps_and_derivatives() -> None:
    a, b = drawn(3, 2), drawn(5, 2)
    distances = vmap(vmap(lambda p, q: ((p - q) ** 2).sum(), (None, 0)), (0, None))
    close(distances(a, b), ((a[:, None] - b) ** 2).sum(-1))
    total = grad(lambda p: distances(p, b).sum())(a)
    close(total, 2 * (5 * a - b.sum(0)))
    each = vmap(grad(lambda p: distances(p[None], b).sum()))(a)
    close(each, total)


def test_writes_in_place_reach_the_batch() -> None:
    x = drawn(4, 3)

    def f(row: tt.Tensor) -> tt.Tensor:
        out = tt.zeros_like(row)
        out[1:] = row[:-1]
        out[0] += row[2]
        out.mul_(row)
        return out

    close(vmap(f)(x), x.roll(1, 1) * x)
    given = drawn(4, 3)
    vmap(lambda d, s: d.copy_(s))(given, x)
    close(given, x)
    with pytest.raises(tt.TransformError, match="use the out-of-place form, or make the tensor from a mapped one"):
        vmap(lambda row: tt.zeros(3, dtype=tt.float64).add_(row))(x)


def test_indices_of_each_example() -> None:
    x, i = drawn(4, 5, 3), tt.tensor([0, 4, 2, 2])
    rows = tt.arange(4)
    close(vmap(lambda a, k: a[k])(x, i), x[rows, i])
    close(vmap(lambda k: x[0][k])(i), x[0][i])
    close(vmap(lambda a, k: a.index_put((k[None],), a[:1] * 0))(x, i)[rows, i], tt.zeros(4, 3, dtype=tt.float64))


def test_random_numbers() -> None:
    x = drawn(4, 3)
    with pytest.raises(tt.TransformError, match="randomness='different'"):
        vmap(lambda a: a + tt.rand(3))(x)
    tt.manual_seed(1)
    different = vmap(lambda a: a * 0 + tt.randn(3, dtype=tt.float64), randomness="different")(x)
    assert len(np.unique(different.numpy())) == 12
    same = vmap(lambda a: a * 0 + tt.randn(3, dtype=tt.float64), randomness="same")(x)
    assert len(np.unique(same.numpy())) == 3
    drop = tt.nn.functional.dropout
    masks = vmap(lambda a: drop(tt.ones_like(a), 0.5), randomness="different")(drawn(2, 64))
    assert (masks[0] != masks[1]).any()
    masks = vmap(lambda a: drop(tt.ones_like(a), 0.5), randomness="same")(drawn(2, 64))
    assert (masks[0] == masks[1]).all()
    orders = vmap(lambda a: tt.randperm(20), randomness="different")(drawn(3))
    assert (orders.sort(1)[0] == tt.arange(20)).all()
    assert (orders[0] != orders[1]).any()
    after = vmap(lambda a: tt.rand(2), randomness="different")(drawn(3))
    assert not np.isin(after.numpy(), tt.rand(6).numpy()).any()  # the stream went on by as much as was drawn


def test_pieces_of_a_batch() -> None:
    x = drawn(7, 2)
    sizes = []

    def f(a: tt.Tensor) -> tt.Tensor:
        sizes.append(debug_unwrap(a).shape[0])
        return a.sum()

    close(vmap(f, chunk_size=3)(x), x.sum(1))
    assert sizes == [3, 3, 1]


def test_an_op_without_a_rule_says_so_once() -> None:
    from tritensor.func.rules import registry

    registry._warned.discard("nonzero_static")
    x = drawn(3, 4)
    with pytest.warns(UserWarning, match="nonzero_static has no rule for batches and runs in a loop over the 3 examples"):
        vmap(lambda a: tt.nonzero_static(a > 0, size=4))(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(lambda a: tt.nonzero_static(a > 0, size=4))(x)


def test_functions_of_the_host_run_in_a_loop() -> None:
    from tritensor.func import mapping

    mapping._warned.discard("bincount")
    x = tt.tensor([[0, 2, 2], [1, 1, 1]])
    with pytest.warns(UserWarning, match="bincount computes on the host"):
        found = vmap(lambda a: tt.bincount(a, minlength=3))(x)
    assert found.tolist() == [[1, 0, 2], [0, 3, 0]]


def test_no_examples() -> None:
    assert vmap(lambda a: (a.sum(), a @ a.T))(tt.zeros(0, 2, 3))[1].shape == (0, 2, 2)


def test_what_tensors_show() -> None:
    shown: list[str] = []
    vmap(lambda a: shown.append(repr(a)) or a)(tt.ones(2, 1))  # type: ignore[func-returns-value]
    assert shown[0].startswith("BatchedTensor(lvl=")
    assert "tensor([[1.]," in shown[0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: vmap(lambda a: a.item())(x[0]), "needs a tensor's values"),
        (lambda x: vmap(lambda a: a if a > 0 else -a)(x[0]), "write it with tensor operations"),
        (lambda x: vmap(lambda a: a.nonzero())(x), "needs a tensor's values"),
        (lambda x: vmap(lambda a: a, in_dims=5)(x), "no such dimension; give one from -2 to 1"),
        (lambda x: vmap(lambda a: a, in_dims=(0, 0))(x), "is not nested as the arguments"),
        (lambda x: vmap(lambda a: a, in_dims=None)(x), "maps no tensor"),
        (lambda x: vmap(lambda a: a)(1.5), "in_dims is 0 for a float"),
        (lambda x: vmap(lambda a, b: a)(x, x[:2]), "sizes \\[4, 2\\]; all tensors must hold as many examples"),
        (lambda x: vmap(lambda a: 3)(x), "the function returned an int; it must return tensors"),
        (lambda x: vmap(lambda a: a, out_dims=(0, 1))(x), "out_dims is \\(0, 1\\)"),
        (lambda x: vmap(lambda a: a, out_dims=None)(x), "out_dims is None for an output that differs"),
        (lambda x: vmap(lambda a: a, randomness="random")(x), "'error', 'different' or 'same'"),
        (lambda x: vmap(lambda a: a, chunk_size=0)(x), "give a positive int"),
        (lambda x: vmap(lambda a: a @ tt.ones(2, 2))(x), "a \\(3,\\) @ b \\(2, 2\\)"),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=said) as found:
        call(drawn(4, 3).float())
    assert "\n" not in str(found.value)


ZEROS = tt.zeros(12, 3)
DRAWS = {
    "channels": lambda a: tt.nn.functional.dropout2d((a + 1).reshape(1, 3, 1, 1), 0.5).flatten(),
    "alpha channels": lambda a: tt.nn.functional.feature_alpha_dropout((a + 1).reshape(1, 3, 1), 0.5, True).flatten(),
    "of what is no example": lambda a: a + tt.nn.functional.dropout(tt.ones(3), 0.5),
    "native": lambda a: tt.native_dropout(a + 1, 0.5, True)[0],
    "gumbel": lambda a: tt.nn.functional.gumbel_softmax(a),
    "poisson": lambda a: tt.poisson(a + 20),
    "binomial": lambda a: tt.binomial(a + 20, a + 0.5),
    "multinomial": lambda a: tt.multinomial(a + 1, 20, replacement=True),
}


@pytest.mark.filterwarnings("ignore:vmap:UserWarning")
@pytest.mark.parametrize("name", DRAWS)
def test_examples_draw_their_own_numbers_or_all_the_same(name: str) -> None:
    def rows(randomness: str) -> int:
        return len({tuple(row) for row in vmap(DRAWS[name], randomness=randomness)(ZEROS).tolist()})

    tt.manual_seed(0)
    assert rows("different") > 3
    assert rows("same") == 1
    with pytest.raises(tt.TransformError, match="randomness='different'"):
        rows("error")


@pytest.mark.filterwarnings("ignore:vmap:UserWarning")
@pytest.mark.parametrize("draw", [lambda a: tt.dropout(a + 1, 0.5, True), lambda a: tt.poisson(a + 50)])
def test_draws_of_a_vmap_inside_a_vmap(draw: Any) -> None:
    tt.manual_seed(0)
    x = tt.zeros(3, 2, 8)
    y = vmap(vmap(draw, randomness="same"), randomness="different")(x)
    assert tt.equal(y[:, 0], y[:, 1])
    assert not tt.equal(y[0], y[1])
    y = vmap(vmap(draw, randomness="different"), randomness="same")(x)
    assert tt.equal(y[0], y[1])
    assert not tt.equal(y[:, 0], y[:, 1])


def test_a_function_of_the_host_in_a_vmap_inside_a_vmap() -> None:
    x = tt.tensor([[[1, 2], [3, 3]], [[0, 0], [4, 1]]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = vmap(vmap(lambda a: tt.bincount(a, minlength=5)))(x)
    assert tt.equal(y, tt.stack([tt.stack([tt.bincount(a, minlength=5) for a in b]) for b in x]))


@pytest.mark.parametrize(
    "f",
    [lambda a: a.clone().add_(1), lambda a: tt.nn.functional.batch_norm(a, None, None, training=True), lambda a: tt.zeros_like(a).copy_(a)],
)
def test_no_examples_at_all(f: Any) -> None:
    assert vmap(f)(tt.zeros(0, 3, 4)).shape == (0, 3, 4)


def test_a_backward_with_a_graph_inside_a_function_of_one_example() -> None:
    def slope(x: tt.Tensor) -> tt.Tensor:
        w = tt.ones(2, requires_grad=True)
        (w * x).sum().backward(create_graph=True)
        assert w.grad is not None
        return w.grad

    close(grad(lambda x: slope(x).sum())(tt.ones(2)), tt.ones(2))


def test_chunks_have_the_draws_that_the_whole_would_have() -> None:
    """With randomness="same" all examples of all chunks have one draw."""
    found = vmap(lambda y: y * 0 + tt.rand(3), randomness="same", chunk_size=2)(tt.zeros(5, 3))
    assert (found == found[0]).all()
    found = vmap(lambda y: y * 0 + tt.rand(3), randomness="different", chunk_size=2)(tt.zeros(5, 3))
    assert len({tuple(row) for row in found.tolist()}) == 5


@pytest.mark.parametrize(
    "draw",
    [
        lambda v: tt.multinomial(v, 5),
        lambda v: tt.poisson(v),
        lambda v: tt.binomial(v, v / 200),
        lambda v: tt.bernoulli(v, 0.5),
        lambda v: tt.bernoulli(v / 200),
        lambda v: tt.nn.functional.dropout(v),
    ],
)
def test_what_is_the_same_for_all_is_drawn_from_for_each(draw: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = vmap(lambda one, same: draw(same), (0, None), randomness="different")(tt.zeros(4), tt.full((64,), 100.0))
    assert len({tuple(row) for row in found.tolist()}) == 4
