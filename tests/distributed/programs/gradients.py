"""Gradients through collectives: that of the sum of all ranks' losses, each a weighted sum of what came out, against its formula."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
import tritensor.distributed as dist
from tritensor.distributed import nn


def weights(rank: int, seed: int, *shape: int) -> np.ndarray:
    """Those of a rank's loss, known to all."""
    return np.random.default_rng([rank, seed]).integers(-3, 4, shape).astype(np.float64)


def grad(out: tt.Tensor | tuple[tt.Tensor, ...], given: list[np.ndarray], x: list[tt.Tensor]) -> list[list[float]]:
    outs = out if isinstance(out, tuple) else (out,)
    loss = sum((o * tt.from_numpy(w)).sum() for o, w in zip(outs, given, strict=True))
    loss.backward()
    return [t.grad.tolist() for t in x]


def main() -> None:
    dist.init_process_group("mpi")
    r, n = dist.get_rank(), dist.get_world_size()
    w = [weights(k, 0, 3) for k in range(n)]
    rows = [weights(k, 1, n, 3) for k in range(n)]

    def x() -> tt.Tensor:
        return tt.full((3,), float(r), dtype=tt.float64, requires_grad=True)

    total = sum(w).tolist()
    t = x()
    y = nn.all_reduce(t)
    assert y.tolist() == [n * (n - 1) / 2] * 3
    assert grad(y, [w[r]], [t]) == [total]
    t = x()
    assert grad(nn.all_reduce(t, dist.ReduceOp.AVG), [w[r]], [t]) == [(sum(w) / n).tolist()]
    t = x()
    y = nn.broadcast(t, 1)
    assert y.tolist() == [1.0] * 3
    assert grad(y, [w[r]], [t]) == [total if r == 1 else [0.0] * 3]
    t = x()
    y = nn.reduce(t, 1)
    assert r != 1 or y.tolist() == [n * (n - 1) / 2] * 3
    assert grad(y, [w[r]], [t]) == [w[1].tolist()]
    t = x()
    ys = nn.all_gather(t)
    assert [y.tolist() for y in ys] == [[float(k)] * 3 for k in range(n)]
    assert grad(ys, list(rows[r]), [t]) == [sum(rows[k][r] for k in range(n)).tolist()]
    t = x()
    ys = nn.gather(t, 1)
    assert grad(ys, list(rows[r]), [t]) == [rows[1][r].tolist()]
    ts = [x() for _ in range(n)]
    y = nn.scatter(ts, 1)
    assert y.tolist() == [1.0] * 3
    assert grad(y, [w[r]], ts) == ([v.tolist() for v in w] if r == 1 else [[0.0] * 3] * n)
    ts = [x() for _ in range(n)]
    y = nn.reduce_scatter(tt.empty(3, dtype=tt.float64), ts)
    assert y.tolist() == [n * (n - 1) / 2] * 3
    assert grad(y, [w[r]], ts) == [v.tolist() for v in w]
    ts = [x() for _ in range(n)]
    ys = nn.all_to_all([tt.empty(3, dtype=tt.float64) for _ in range(n)], ts)
    assert [y.tolist() for y in ys] == [[float(k)] * 3 for k in range(n)]
    assert grad(ys, list(rows[r]), ts) == [rows[k][r].tolist() for k in range(n)]
    t = tt.full((n * (r + 1),), float(r), dtype=tt.float64, requires_grad=True)
    takes = [k + 1 for k in range(n)]
    y = nn.all_to_all_single(tt.empty(sum(takes), dtype=tt.float64), t, takes, [r + 1] * n)
    assert y.tolist() == [float(k) for k in range(n) for _ in range(k + 1)]
    one = [weights(k, 2, sum(takes)) for k in range(n)]
    want = np.concatenate([one[k][sum(takes[:r]) : sum(takes[: r + 1])] for k in range(n)])
    assert grad(y, [one[r]], [t]) == [want.tolist()]
    with pytest.raises(ValueError, match="gradients go through SUM and AVG"):
        nn.all_reduce(x(), dist.ReduceOp.MAX)
    dist.destroy_process_group()
    print(f"rank {r} done\n", end="", flush=True)


if __name__ == "__main__":
    main()
