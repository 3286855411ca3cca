"""Gradients through collectives, first and second, of the sum of all ranks' losses: each collective is a matrix, which numpy multiplies by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.distributed as dist
from tritensor.distributed import nn

Formula = Callable[[np.ndarray], np.ndarray]  # all ranks' inputs (rank, tensor, element) to all ranks' outputs


def matrix(formula: Formula, n: int, slots: int, k: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """What a formula multiplies all ranks' inputs by, and the shape of what comes out."""
    columns = [formula(e.reshape(n, slots, k)) for e in np.eye(n * slots * k)]
    return np.stack([c.reshape(-1) for c in columns], 1), columns[0].shape


def check(name: str, call: Callable[..., Any], formula: Formula, slots: int, k: int = 3) -> None:
    """L = sum(w * y**3) over all ranks, by x; then sum(grad**2), by x again."""
    r, n = dist.get_rank(), dist.get_world_size()
    a, shape = matrix(formula, n, slots, k)
    rng = np.random.default_rng(k)
    x, w = rng.integers(-3, 4, (n, slots, k)).astype(np.float64), rng.integers(-3, 4, shape).astype(np.float64)
    y = a @ x.reshape(-1)
    g = a.T @ (3 * w.reshape(-1) * y**2)
    gg = a.T @ (6 * w.reshape(-1) * y * (2 * a @ g))
    mine = [tt.tensor(row, dtype=tt.float64, requires_grad=True) for row in x[r]]
    found = call(*mine)
    outs: Sequence[tt.Tensor] = found if isinstance(found, tuple) else (found,)
    same(f"{name}: values", outs, y.reshape(shape)[r])
    loss = sum(((o.reshape(-1) ** 3) * tt.tensor(row)).sum() for o, row in zip(outs, w[r], strict=True))
    grads = tt.autograd.grad(loss, mine, create_graph=True)
    same(f"{name}: gradients", grads, g.reshape(n, slots, k)[r])
    again = tt.autograd.grad(sum((v * v).sum() for v in grads), mine)
    same(f"{name}: second gradients", again, gg.reshape(n, slots, k)[r])


def same(what: str, tensors: Sequence[tt.Tensor], want: np.ndarray) -> None:
    np.testing.assert_allclose(np.stack([t.detach().numpy() for t in tensors]), want, rtol=1e-12, err_msg=what)


def only(x: np.ndarray, rank: int) -> np.ndarray:
    """The same on one rank, zeros on the others."""
    kept = np.zeros_like(x)
    kept[rank] = x[rank]
    return kept


def all_of_them(n: int) -> None:
    def total(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x.sum(0), x.shape)

    def rooted(x: np.ndarray) -> np.ndarray:  # the others keep theirs, outside of the loss' gradient: see `reduced`
        return only(total(x), 1)

    def reduced(t: tt.Tensor, **more: Any) -> tt.Tensor:
        out = nn.reduce(t, 1, **more)
        assert dist.get_rank() == 1 or out.tolist() == t.tolist(), "the others get their own"
        return out if dist.get_rank() == 1 else out * 0

    def gathered(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x[:, 0], (n, n, x.shape[-1]))

    check("all_reduce", nn.all_reduce, total, 1)
    check("all_reduce, mean", lambda t: nn.all_reduce(t, dist.ReduceOp.AVG), lambda x: total(x) / n, 1)
    check("broadcast", lambda t: nn.broadcast(t, 1), lambda x: np.broadcast_to(x[1], x.shape), 1)
    check("reduce", reduced, rooted, 1)
    check("reduce, mean", lambda t: reduced(t, op=dist.ReduceOp.AVG), lambda x: rooted(x) / n, 1)
    check("all_gather", nn.all_gather, gathered, 1)
    check("gather", lambda t: nn.gather(t, 1), lambda x: only(gathered(x), 1), 1)
    check("scatter", lambda *t: nn.scatter(t, 1), lambda x: x[1][:, None], n)
    for op, scale in ((dist.ReduceOp.SUM, 1), (dist.ReduceOp.AVG, n)):
        out = tt.zeros(3, dtype=tt.float64)
        check("reduce_scatter", lambda *t, o=out, op=op: nn.reduce_scatter(o, t, op), lambda x, s=scale: x.sum(0)[:, None] / s, n)
        assert out.abs().sum().item() > 0, "the output is written"
    room = [tt.zeros(3, dtype=tt.float64) for _ in range(n)]
    check("all_to_all", lambda *t: nn.all_to_all(room, t), lambda x: x.swapaxes(0, 1), n)
    assert room[0].abs().sum().item() > 0


def rows_of_several_lengths(r: int, n: int) -> None:
    """all_to_all_single: rank r sends r + 1 rows to each, which the same the other way round takes back."""
    takes = [k + 1 for k in range(n)]
    x = tt.full((n * (r + 1), 2), float(r), dtype=tt.float64, requires_grad=True)
    y = nn.all_to_all_single(tt.empty(sum(takes), 2, dtype=tt.float64), x, takes, [r + 1] * n)
    assert y[:, 1].tolist() == [float(k) for k in range(n) for _ in range(k + 1)]
    w = [np.random.default_rng([k]).standard_normal((sum(takes), 2)) for k in range(n)]
    (grad,) = tt.autograd.grad((y**2 * tt.tensor(w[r])).sum(), x, create_graph=True)
    mine = np.concatenate([w[k][sum(takes[:r]) : sum(takes[: r + 1])] for k in range(n)])
    np.testing.assert_allclose(grad.detach().numpy(), 2 * r * mine)
    np.testing.assert_allclose(tt.autograd.grad((grad**2).sum(), x)[0].numpy(), 8 * r * mine**2)
    if n == 2:
        check("all_to_all_single", lambda t: nn.all_to_all_single(tt.empty(4, dtype=tt.float64), t), halves, 1, 4)


def halves(x: np.ndarray) -> np.ndarray:
    return x.reshape(2, 2, 2).swapaxes(0, 1).reshape(x.shape)


def numbers(r: int, n: int) -> None:
    """Tensors of no dimensions."""
    t = tt.tensor(float(r + 1), requires_grad=True)
    ys = nn.all_gather(t)
    assert [y.item() for y in ys] == [k + 1.0 for k in range(n)]
    (sum(ys) * (r + 1)).backward()
    assert t.grad.item() == n * (n + 1) / 2
    ts = [tt.tensor(float(k), requires_grad=True) for k in range(n)]
    nn.scatter(ts, 0).backward()
    assert [v.grad.item() for v in ts] == [float(r == 0)] * n


def refused(r: int) -> None:
    t = tt.ones(2, requires_grad=True)
    assert nn.all_reduce(tt.full((2,), float(r)), dist.ReduceOp.MAX).tolist() == [dist.get_world_size() - 1.0] * 2
    for call, error, said in (
        (lambda: nn.all_reduce(t, dist.ReduceOp.MAX), ValueError, "op is 'MAX', and the tensor requires a gradient"),
        (lambda: nn.reduce_scatter(t.detach(), [t], dist.ReduceOp.PRODUCT), ValueError, "op is 'PRODUCT'"),
        (lambda: nn.scatter([], 0), ValueError, "tensors is empty"),
        (lambda: nn.scatter(t, 0), TypeError, "parameter `tensors` of type"),
        (lambda: nn.all_to_all([t], [t, t]), ValueError, "1 tensors to receive and 2 to send"),
        (lambda: nn.all_to_all_single(tt.zeros(3), tt.zeros(3), [1], [3]), ValueError, "split_sizes"),
    ):
        with pytest.raises(error, match=said):
            call()


def main() -> None:
    dist.init_process_group("mpi")
    r, n = dist.get_rank(), dist.get_world_size()
    all_of_them(n)
    rows_of_several_lengths(r, n)
    numbers(r, n)
    refused(r)
    dist.destroy_process_group()
    print(f"rank {r} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
