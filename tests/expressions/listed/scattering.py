"""Elements put by index and reduced on the way, parts of a copy replaced, masks."""

from __future__ import annotations

# n is [.., .., ..] in 0..2; n.reshape(1, 3) names places in one row, n % 2 rows
_PLACES = "n.reshape(1, 3)"
_ROWS = "n.reshape(1, 3) % 2"
_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")

EXPRESSIONS = [
    *(f"T.scatter_reduce(x, 1, {_PLACES}, y, {r!r})" for r in _REDUCTIONS),
    *(f"T.scatter_reduce(x, 0, {_ROWS}, y, {r!r}, include_self=False)" for r in _REDUCTIONS),
    *(f"x.scatter_reduce(0, (n * 0).expand(2, 3), y, reduce={r!r})" for r in _REDUCTIONS),
    *(f"x.clone().scatter_reduce_(1, {_PLACES}, y, {r!r})" for r in _REDUCTIONS),
    *(f"i.scatter_reduce(1, {_PLACES}, j, {r!r})" for r in _REDUCTIONS),
    *(f"i.scatter_reduce(0, {_ROWS}, j, {r!r}, include_self=False)" for r in _REDUCTIONS),
    *(f"k.scatter_reduce(1, {_PLACES}, ~k, {r!r})" for r in ("sum", "prod", "amax", "amin")),
    *(f"T.scatter_reduce(s, 0, T.arange(10, device=on) % 2, s, {r!r})" for r in ("sum", "prod")),
    *(f"T.scatter_reduce(s.detach(), 0, T.arange(10, device=on) % 2, s.detach(), {r!r})" for r in ("amax", "amin")),
    "T.scatter_reduce(o, 0, n[0], o * 2, 'prod')", "T.scatter_reduce(x, 0, n[:0].reshape(0, 3), y, 'amax')", "T.scatter_reduce(x, 1, n.reshape(1, 3) + 1, y, 'amax')",
    "T.scatter_reduce(x, 1, n.reshape(1, 3), y, 'median')", "T.scatter_reduce(x, 1, n.reshape(1, 3), f, 'sum')", "T.scatter_reduce(x, 1, n, y, 'sum')",
    "T.scatter_reduce(x, 1, x, y, 'sum')", "T.scatter_reduce(x, 2, n.reshape(1, 3), y, 'sum')", "T.scatter_reduce(x * (x > 0), 1, n.reshape(1, 3) * 0, y * 0, 'prod')",
    *(f"T.index_reduce(x, 1, n, y, {r!r})" for r in _REDUCTIONS),
    *(f"T.index_reduce(x, 0, n[:2] * 0, y, {r!r}, include_self=False)" for r in _REDUCTIONS[1:]),
    *(f"x.clone().index_reduce_(1, n, y, {r!r})" for r in _REDUCTIONS[1:]),
    *(f"i.index_reduce(1, n, j, {r!r})" for r in _REDUCTIONS[1:]),
    "T.index_reduce(x, 1, n - 1, y, 'amax')", "T.index_reduce(x, 1, n[:2], y, 'amax')", "T.index_reduce(o, 0, n[:1] * 0, o * 2, 'prod')", "T.index_reduce(x, 0, n, y, 'amax')",
    "T.scatter(x, 1, n.reshape(1, 3), y, reduce='add')", "x.detach().scatter(1, n.reshape(1, 3), y.detach(), reduce='multiply')", "T.scatter(x, 1, n.reshape(1, 3), value=2)",
    "x.detach().scatter(1, n.reshape(1, 3) * 0, 3.0, reduce='multiply')", "o.detach().scatter(0, n[0] * 0, 2.0, reduce='multiply')", "T.scatter(x, 1, n.reshape(1, 3) - 1, y)",
    "x.clone().scatter_add_(1, n.expand(2, 3), y)", "T.scatter_add(x, 0, (n[:2] * 0).reshape(2, 1).expand(2, 3), y)", "T.scatter(x, 0, T.tensor([[1], [0]], device=on).expand(2, 3), y)",
    "T.gather(x, 0, T.tensor([[1], [0]], device=on).expand(2, 3))", "T.gather(x, 1, n.expand(2, 3))", "T.gather(x, 1, n.reshape(1, 3), sparse_grad=True)", "T.gather(x, 1, n.reshape(1, 3) - 1)",
    "T.index_add(x, 1, n - 1, y)", "T.index_add(x, 0, n, y)", "T.index_add(b, 1, n % 3, b, alpha=-2)", "T.index_add(u, 0, n[:1] * 0, u[:1], alpha=-1)", "T.index_add(x, 1, n, y, alpha=0.5)", "T.index_add(o, 0, n[:1] * 0, o)",
    "T.index_add(x, 1, n, f)", "T.index_copy(x, 1, n - 1, y)", "T.index_copy(x, 1, n[:2], y)", "T.index_copy(b, 2, n, b * 2)", "T.index_select(x, 1, n - 1)", "T.index_select(b, 1, n)", "T.index_select(o, 0, n[:1] * 0)",
    "T.index_select(x, 1, n.reshape(1, 3))", "T.index_fill(x, 1, n - 1, 5.0)", "T.index_fill(x, 1, n * 0, o)", "T.index_fill(x, 1, -n - 1, 2)", "T.index_fill(x, 1, n, v)", "x.clone().index_fill_(1, n * 0, o)",
    "T.index_fill(x, 1, n + 1, 0.0)", "T.index_fill(i, 0, n[:1] * 0, 7)", "T.index_fill(k, 1, n[:1], True)", "T.index_put(x, (None, n), y)", "T.index_put(x, [n % 2], v, True)", "T.index_put(x, (k,), o)",
    "T.index_put(x, (n + 5,), v)", "T.index_put(x, (n % 2, n), f[0])", "x.clone().index_put_((None, n), y, accumulate=True)", "x.index_put((n % 2, n), T.zeros(2, dtype=T.float64))",
    "x.put(n, v)", "x.put(n * 0, v, accumulate=True)", "x.put(-n - 1, v)", "x.put(n + 4, v)", "x.put(n, v[:2])", "x.clone().put_(n, v, True)", "x.clone().put_(n, v)", "i.put(n, n)", "x.put(n.reshape(3, 1), v)", "x.put(n, f)",
    "T.put(x, n, v, True) ~ x.put(n, v, True)", "T.take(x, n - 6)", "T.take(x, n.reshape(3, 1))", "T.masked_scatter(x, k, v[:1])", "T.masked_scatter(v, k, y)", "T.masked_scatter(x, k, f)", "T.masked_scatter(x, i, y)",
    "T.masked_select(v, k)", "T.masked_select(x, x > 0)", "T.masked_select(o, T.tensor(True))", "x[x > 0]", "b[b > 0]", "b[k]", "x[x > 100]", "T.masked_select(x, k[:1, :2])", "written(x, k, v[:k.sum()])", "written(x, k, 2.0)",
    "T.masked_fill(x, k, o)", "T.masked_fill(v, k, 1)", "T.where(k, x, 2)", "T.where(k, i, 2.5)", "T.where(k, 1, 2)", "T.where(k, 1.0, 2)", "T.where(k, i, f)", "T.where(k, v, o)", "x.where(k, 0)", "T.where(k)", "T.where(u > 3, u, i)",
    "T.where(k, True, i)", "T.where(x, x, y)", "x.where(k, f)",
    "T.select_scatter(x, y[0], 0, 1)", "T.select_scatter(x, y[:, 0], 1, -1)", "x.select_scatter(v[:2], 1, 0)", "T.select_scatter(x, y, 0, 1)", "T.select_scatter(x, v, 0, 2)", "T.select_scatter(b, m, 0, -2)",
    "T.slice_scatter(x, y[:, :2], 1, 1)", "T.slice_scatter(x, y[:1], start=1)", "T.slice_scatter(b, b[:, :2] * 2, 1, 0, 3, 2)", "x.slice_scatter(y[:, :1], 1, -1)", "T.slice_scatter(x, y, 1, 5)", "T.slice_scatter(x, y, 1, 0, 9)",
    "T.slice_scatter(x, y[:, :2], 1, 1, 3, 0)", "T.slice_scatter(x, y[:, :2], 2)",
    "T.diagonal_scatter(m, v)", "T.diagonal_scatter(m, v[:2], 1)", "T.diagonal_scatter(b, b.diagonal(0, 1, 2) * 2, 0, 1, 2)", "m.diagonal_scatter(v[:1], -2)", "T.diagonal_scatter(m, v[:2])",
    "T.as_strided_scatter(x.detach(), v, (3,), (2,))", "T.as_strided_scatter(x.detach(), v[:2], (2,), (1,), 1)", "x.detach().as_strided_scatter(m, (3, 3), (3, 1))", "T.as_strided_scatter(x.detach(), v, (2,), (2,))",
    *(f"T.segment_reduce(x, {r!r}, lengths=T.tensor([[1, 0, 2], [0, 3, 0]], device=on), axis=1)" for r in ("sum", "mean", "max", "min", "prod")),
    *(f"T.segment_reduce(v, {r!r}, lengths=T.tensor([2, 0, 1], device=on), initial=1.5)" for r in ("sum", "mean", "max", "min", "prod")),
    "T.segment_reduce(v, 'sum', offsets=T.tensor([0, 1, 3], device=on))", "T.segment_reduce(x, 'max', offsets=T.tensor([1, 2], device=on))", "T.segment_reduce(v, 'sum', lengths=n[:1], unsafe=True)",
    "T.segment_reduce(v, 'sum', lengths=n[:1])", "T.segment_reduce(v, 'median', lengths=n)", "T.segment_reduce(v, 'sum')", "T.segment_reduce(v, 'sum', lengths=T.tensor([4, -1], device=on))",
    "T.segment_reduce(x, 'sum', lengths=n, axis=1)",
    "T._unsafe_masked_index(x, k, [n[:2].reshape(2, 1) * 0, n + 1], 0.5)", "T._unsafe_masked_index_put_accumulate(x, k, [n[:2].reshape(2, 1) * 0, n + 1], y)",
    "T.narrow_copy(x, 1, 1, 2)", "x.narrow_copy(0, -1, 1)", "T.narrow_copy(x, 1, 2, 2)", "T.narrow(o, 0, 0, 1)", "T.narrow(x, 1, n[0], 1)", "T.narrow(x, 1, T.tensor(True), 1)",
    *[f"i.index_add(1, n, j, alpha={v})" for v in (0.5, 2.5, "3 + 0j", "1e30")],
    *[f"k.index_add(0, n[:2] % 2, k, alpha={a})" for a in ("-1", "0", "2", "True")], "T.tensor(True, device=on).index_add(0, n[1:2], k[0, 0], alpha=-1)",
]  # fmt: skip
# What is otherwise than in PyTorch on purpose: why
_UNREAD = "what the index does not reach has no part in the product, its gradient is 0; PyTorch's formula gives it that of what is reached"
_NONE = "None stands for a whole dimension, as in PyTorch's C++; its Python refuses it"
MEANT: dict[str, str] = {
    "T.scatter_reduce(x, 1, n.reshape(1, 3), y, 'prod')": _UNREAD,
    "T.scatter_reduce(x, 0, n.reshape(1, 3) % 2, y, 'prod', include_self=False)": _UNREAD,
    "x.clone().scatter_reduce_(1, n.reshape(1, 3), y, 'prod')": _UNREAD,
    "T.index_put(x, (None, n), y)": _NONE,
    "x.clone().index_put_((None, n), y, accumulate=True)": _NONE,
    "x.narrow_copy(0, -1, 1)": "the gradient stands where it was read; PyTorch loses it where start counts from the end",
}
