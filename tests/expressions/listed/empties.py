"""Arguments without elements, in every place: nothing to do is no mistake; an index into a dimension of size 0 is one where something would be touched."""

from __future__ import annotations

_TARGETS = {"e": (0,), "x[:0]": (0, 3), "x[:, :0]": (2, 0), "x[:0, :0]": (0, 0), "b[:, :0]": (2, 0, 3), "x": (2, 3), "v": (3,)}
_INDICES = {"n[:0]": (), "n[:1]": (2,), "n[1:]": (0, 1), "n[1:] + 3": (3, 4)}
_REDUCED = ("sum", "mean", "amax")


def _of_slices(target: str, dim: int, index: str) -> list[str]:
    """What is read and written at the slices of a dimension that a vector names."""
    shape = list(_TARGETS[target])
    shape[dim] = len(_INDICES[index])
    source, plain = f"T.ones({tuple(shape)}, dtype=T.float64, device=on)", f"{target}.detach().clone()"
    return [
        f"{plain}.index_fill_({dim}, {index}, 0.5)", f"{target}.index_fill({dim}, {index}, 0.5)", f"{target}.index_add({dim}, {index}, {source})",
        f"{plain}.index_add_({dim}, {index}, {source})", f"{target}.index_copy({dim}, {index}, {source})", f"{target}[{':, ' * dim}{index}]",
        f"written({target}, ({'slice(None), ' * dim}{index},), 0.5)", *_where_values_are_looked_at(target, dim, index, source),
    ]  # fmt: skip


def _where_values_are_looked_at(target: str, dim: int, index: str, source: str) -> list[str]:
    plain = f"{target}.detach().clone()"
    return [f"{plain}.index_select({dim}, {index})", f"{plain}.index_reduce_({dim}, {index}, {source}, 'amax')"]


def _unseen(target: str, dim: int, index: str) -> bool:
    """Whether an index is out of range, but of slices that hold nothing."""
    shape = list(_TARGETS[target])
    size = shape.pop(dim)
    return 0 in shape and size > 0 and any(i >= size for i in _INDICES[index])


_EACH = [(target, dim, index) for target, shape in _TARGETS.items() for dim in range(len(shape)) for index in _INDICES]

EXPRESSIONS = [
    *(e for each in _EACH for e in _of_slices(*each)),
    # an index without elements may be of any shape, and larger than what it is of
    *(f"{t}.gather(0, n[:0].reshape({shape}))" for t in ("x", "e", "x[:0]") for shape in ("0,", "1, 0", "5, 0", "0, 7")),
    *(f"{t}.detach().clone().scatter_(0, n[:0].reshape({shape}), {s}.detach())" for t in ("x", "x[:0]") for shape in ("0,", "1, 0", "0, 7") for s in ("x[:, :0]", "e", "x")),
    *(f"{t}.detach().clone().scatter_add_(0, n[:0].reshape({shape}), {s}.detach())" for t in ("x", "x[:0]") for shape in ("0,", "1, 0", "0, 7") for s in ("x[:, :0]", "e", "x")),
    *(f"x.detach().clone().scatter_reduce_(0, n[:0].reshape({shape}), {s}.detach(), {r!r}, include_self={own})" for shape in ("0,", "1, 0", "0, 7") for s in ("e", "x") for r in _REDUCED for own in (True, False)),
    *(f"x[:0].detach().clone().scatter{how}(0, n.reshape(1, 3), x.detach(){more})" for how, more in (("_", ""), ("_add_", ""), ("_reduce_", ", 'sum'"), ("_reduce_", ", 'amax'"))),
    *(f"x.take(n[:0].reshape({shape}))" for shape in ("0,", "2, 0")), "x.detach().clone().put_(n[:0], e)", "x.detach().clone().masked_scatter_(x > 9, e)",
    "x.masked_select(x > 9)", "x[:0].masked_select(x[:0] > 0)", "x[:, :0].masked_fill(k[:, :0], 1.5)", "T.take_along_dim(x[:0], n[:0].reshape(0, 1), 1)",
    # elsewhere
    "T.bincount(n[:0], v)", "T.bincount(n[:0], v, 2)", "T.cat([e, e], 1)", "T.cat([e, x], 1)", "T.meshgrid([])", "T.einsum('aij,ajk->aik', b[:0], b[:1])", "T.einsum('ij,ij->ij', x[:0], x[:1])",
    "T.einsum('ij,jk->ik', x[:, :0], x[:0])", "x[:0].norm(-2)", "x[:0].norm(float('inf'), 0)", "x[:0].norm(float('inf'), 1)", "x[:0].norm(2, 0)", "x[:0].norm(0)", "x[:0].norm(-1, 0)",
    "T.hash_tensor(x[:0], 0)", "T.hash_tensor(x[:0], 1)", "T.hash_tensor(x[:0], 1, keepdim=True)",
    "F.nll_loss(p[:, :0], n[:0].new_zeros(1, 5, 5), ignore_index=0, reduction='none')", "F.nll_loss(p[:, :0], n[:0].new_zeros(1, 5, 5), ignore_index=0, reduction='sum')",
    "F.nll_loss(x[:, :0].detach(), n[:0].new_zeros(2), reduction='sum')", "F.linear_cross_entropy(x[:, :0], m[:, :0], n[:2])", "F.ctc_loss(b[:0], n[:0].new_zeros(3, 1), n, n * 0)",
    *(f"F.adaptive_avg_pool{d}d({x}, 2)" for d, x in ((1, "b[:, :0]"), (1, "b[:, :, :0]"), (1, "x[:0]"), (2, "p[:, :0]"), (2, "p[:0]"), (2, "b[:0]"), (2, "b[:, :0]"), (3, "p[:0]"), (3, "p[:, :0]"))),
    *(f"F.adaptive_max_pool{d}d({x}, 2)" for d, x in ((1, "b[:, :0]"), (1, "x[:0]"), (2, "p[:, :0]"), (2, "p[:0]"), (2, "b[:0]"), (2, "b[:, :0]"), (3, "p[:0]"))),
    "F.interpolate(b[:, :0], 2, mode='area')", "F.interpolate(p[:, :0], 2, mode='area')", "F.interpolate(b[:, :0], 2)", "F.max_unpool1d(x[:0], n[:0].reshape(0, 3) * i[:0], 2)",
    "F.max_unpool2d(b[:0], n[:0].new_zeros(0, 3, 3), 2)",
]  # fmt: skip
MEANT = {
    e: "the values of an index are not looked at where nothing is read or written"
    for target, dim, index in _EACH if _unseen(target, dim, index)
    for e in _of_slices(target, dim, index)[-2:]
}  # fmt: skip
