"""The steps of a batch normalisation shared among processes give what one over the whole batch gives."""

import numpy as np

import tritensor as tt
from tritensor.nn import functional as F


def drawn(*shape, seed=0):
    return tt.from_numpy(np.random.default_rng(seed).standard_normal(shape) + 0.5)


def test_two_parts_of_a_batch():
    x, g, w, b = drawn(7, 3, 4), drawn(7, 3, 4, seed=1), drawn(3, seed=2), drawn(3, seed=3)
    parts, counts = (x[:5], x[5:]), tt.tensor([20, 8])
    means, invstds = (tt.stack(v) for v in zip(*[tt.batch_norm_stats(p, 1e-3) for p in parts], strict=True))
    running, expected = [(tt.zeros(3).double(), tt.ones(3).double()) for _ in range(2)]
    mean, invstd = tt.batch_norm_gather_stats_with_counts(x, means, invstds, *running, 0.25, 1e-3, counts)
    x.requires_grad_()
    w.requires_grad_()
    whole = F.batch_norm(x, *expected, w, b, True, 0.25, 1e-3)
    for ours, one in zip(running, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), one.numpy(), rtol=1e-12)
    y = tt.cat([tt.batch_norm_elemt(p, w, b, mean, invstd, 1e-3) for p in parts])
    np.testing.assert_allclose(y.numpy(), whole.detach().numpy(), rtol=1e-10, atol=1e-12)
    whole.backward(g)
    sums = [tt.batch_norm_backward_reduce(h, p, mean, invstd, w, True, True, True) for h, p in zip((g[:5], g[5:]), parts, strict=True)]
    sum_dy, sum_dy_xmu, dw, db = (a + c for a, c in zip(*sums, strict=True))
    np.testing.assert_allclose(dw.numpy(), w.grad.numpy(), rtol=1e-10)
    np.testing.assert_allclose(db.numpy(), g.sum((0, 2)).numpy(), rtol=1e-12)
    found = [
        tt.batch_norm_backward_elemt(h, p, mean, invstd, w, sum_dy, sum_dy_xmu, counts) for h, p in zip((g[:5], g[5:]), parts, strict=True)
    ]
    np.testing.assert_allclose(tt.cat(found).numpy(), x.grad.numpy(), rtol=1e-9, atol=1e-12)
    assert tt.batch_norm_backward_reduce(g, x, mean, invstd, None, False, False, True)[:3] == (None, None, None)


def test_parts_of_one_size():
    x = drawn(6, 2)
    means, invstds = (tt.stack(v) for v in zip(*[tt.batch_norm_stats(p, 0.0) for p in (x[:3], x[3:])], strict=True))
    mean, invstd = tt.batch_norm_gather_stats(x, means, invstds, None, None, 0.1, 0.0, 3)
    np.testing.assert_allclose(mean.numpy(), x.mean(0).numpy(), rtol=1e-12)
    np.testing.assert_allclose(invstd.numpy(), x.var(0, correction=0).rsqrt().numpy(), rtol=1e-12)
