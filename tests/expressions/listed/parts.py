"""Joining, splitting, repeating, indexing, gathering."""

from __future__ import annotations

EXPRESSIONS = [
    "T.stack([x])", "T.stack([x], 2)", "T.cat([x])", "T.cat([x], 1)", "T.hstack([x])", "T.vstack([v])", "T.stack([o])", "T.cat([e])",
    "T.cat((x, y))", "T.cat([x, y], 1)", "T.cat((x, i), dim=-1)", "T.cat((x, v))", "T.cat((x, e))", "T.cat(())", "T.concat((x, y))", "T.concatenate((x, y), axis=1)", "T.stack((v, v * 2))",
    "T.stack([x, y], 1)", "T.stack([x, y], -1)", "T.stack([x, v])", "T.stack([x, y], 4)", "T.hstack((x, y))", "T.hstack((v, v))", "T.hstack((x,))", "T.hstack((o, o))", "T.vstack((v,))", "T.dstack((x,))", "T.column_stack((v,))", "T.vstack((v, v))", "T.vstack((x, v))", "T.row_stack((v, v))", "T.dstack((x, y))",
    "T.dstack((v, v))", "T.column_stack((v, x.t()))", "T.split(x, 2, 1)", "T.split(x, [1, 2], dim=1)", "x.split(4, 1)", "T.split(x, [1, 1], dim=1)", "x.split_with_sizes([2, 1], 1)",
    "T.chunk(x, 2, 1)", "T.chunk(v, 5)", "T.chunk(v, 0)", "T.tensor_split(v, 2)", "T.tensor_split(x, (1, 2), dim=1)", "T.tensor_split(x, [1], 1)", "T.hsplit(x, 3)", "T.hsplit(v, 3)", "T.vsplit(v, 2)", "T.dsplit(x, 1)", "T.hsplit(x, indices_or_sections=3) ~ T.hsplit(x, 3)", "T.vsplit(x, 2)",
    "T.vsplit(x, [1])", "T.dsplit(b, [1, 2])", "T.hsplit(x, 2)", "T.unbind(x)", "T.unbind(x, 1)", "T.select(x, 1, 2)", "x.select(0, -1)", "x.select(0, 2)", "x.select(2, 0)", "x.select(0, 1.0)", "x.select(1, T.tensor(1))", "x.select(0, 'a')", "x.select(1, n[0])", "T.narrow(x, 1, 1, 2)",
    "x.narrow(1, -2, 1)", "x.narrow(1, 2, 2)", "T.flip(x, (0,))", "T.flip(x, [0, 1])", "x.flip(-1)", "x.flip(0, 0)", "T.fliplr(x)", "T.flipud(x)", "T.fliplr(v)", "T.roll(x, 1)", "T.roll(x, 2, 1)",
    "T.roll(x, (1, -1), (0, 1))", "T.roll(x, (1, 2), 0)", "T.rot90(x)", "T.rot90(x, 2)", "T.rot90(x, -1, (1, 0))", "T.rot90(x, 4)", "T.rot90(x, 1, (0, 0))", "T.rot90(b, 3, (1, 2))", "v.repeat(2)",
    "x.repeat(2, 1)", "x.repeat(1, 2, 1)", "x.repeat(2)", "T.tile(v, (2,))", "T.tile(x, (2,))", "T.tile(x, (1, 2, 1))", "T.repeat_interleave(v, 2)", "T.repeat_interleave(x, 2, dim=1)",
    "T.repeat_interleave(v, n)", "T.repeat_interleave(x, n[:2], 0)", "T.meshgrid(v, o.reshape(1), indexing='ij')", "T.meshgrid(v, v[:2], indexing='xy')", "T.take(x, n)", "T.take(x, -n - 1)", "T.take(x, n + 9)",
    "T.take_along_dim(x, n.reshape(1, 3), 1)", "T.take_along_dim(x, n)", "T.take_along_axis(x, n.reshape(1, 3), 1) ~ T.take_along_dim(x, n.reshape(1, 3), 1)", "x[0]", "x[-1]", "x[:, 1:]", "x[..., ::2]", "x[None]", "x[1, 2]", "x[n[:2] % 2]", "x[:, n]", "x[k]",
    "x[k.any(1)]", "x[[0, 1], [2, 0]]", "x[1, [0, 2]]", "b[:, 0, [0, 2]]", "b[0, :, [0, 2]]", "b[[0, 1], :, [0, 2]]", "x[T.tensor(1)]", "x[u > 200]", "x[2]", "x[:, 3]", "x[0, 0, 0]", "x[1.0]",
    "x[True]", "x[[True, False]]", "x[n]", "T.index_select(x, 1, n)", "T.index_select(x, 0, n)", "T.gather(x, 1, n.reshape(1, 3))", "T.gather(x, 0, n.reshape(1, 3) % 2)", "T.gather(x, 1, n.reshape(1, 3) + 1)",
    "T.scatter(x, 1, n.reshape(1, 3), y)", "T.scatter(x, 1, n.reshape(1, 3), 7.0)", "x.clone().scatter_(1, n.reshape(1, 3), y)", "x.detach().scatter(1, n.reshape(1, 3), y.detach(), reduce='add')",
    "x.detach().scatter(1, n.reshape(1, 3), 2.0, reduce='multiply')", "T.scatter_add(x, 1, n.reshape(1, 3), y)", "x.clone().scatter_add_(0, n.reshape(1, 3) % 2, y)", "T.index_add(x, 1, n, y)", "T.index_add(x, 1, n, y, alpha=2)",
    "x.clone().index_add_(1, n, y)", "T.index_copy(x, 1, n, y)", "x.clone().index_copy_(1, n, y)", "T.index_fill(x, 1, n[:2], 5.0)", "x.clone().index_fill_(0, n[:1] % 2, 5.0)", "T.index_put(x, (n[:2] % 2, n[:2]), v[:2])",
    "T.index_put(x, (n[:2] % 2, n[:2]), v[:2], accumulate=True)", "x.clone().index_put_((n % 2,), v)", "T.masked_select(x, k)", "T.masked_scatter(x, k, y)", "x.clone().masked_scatter_(k, y)", "T.nonzero(i)", "T.nonzero(x > 0, as_tuple=True)",
    "T.argwhere(k)", "T.nonzero(o)",
]  # fmt: skip
