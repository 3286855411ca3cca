"""Writes into windows some of whose elements share cells, and into expanded tensors: what all agree on is written, the rest is refused."""

from __future__ import annotations

_X = "T.arange(6.0, device=on)"
_ROWS = "T.arange(20.0, device=on).reshape(4, 5)"
_WINDOWS = {
    "w.unfold(0, 2, 1)": _X, "w.unfold(0, 2, 1)[1:3]": _X, "w.as_strided((3, 3), (1, 1))": _X, "w.as_strided((2, 3), (1, 1)).t()": _X,
    "w.as_strided((2, 2), (2, 1), 1).unfold(1, 2, 1)": _X, "w.unfold(0, 2, 1).unfold(1, 3, 1)": _ROWS, "w.unfold(1, 3, 2)[:, :, 1:]": _ROWS,
}  # fmt: skip
_EXPANDED = {"w[:1].expand(4)": _X, "w[:1].expand(4, 4)": _X, "w[:, :1].expand(4, 5)": _ROWS}
_AGREED = (
    "fill_(0.5)", "zero_()", "fill_(T.tensor(2.5, device=on))", "masked_fill_({w} > 2, 0.5)", "masked_fill_({w} > 2, float('nan'))", "index_fill_(0, n[:1] * 0 + 1, 0.5)",
    "index_fill_(-1, n[1:], 9.0)", "relu_()", "clamp_(1, 3)", "clamp_min_(2)", "nan_to_num_()", "abs_()", "__setitem__(slice(1, None), 0.5)", "__setitem__(..., T.tensor(0.5, device=on))",
    "__setitem__(n[1:], 0.5)", "__setitem__({w} > 2, 0.5)", "__setitem__(0, 7.0)",
)  # fmt: skip


def _after(memory: str, window: str, call: str) -> str:
    """The memory after a call of a window on it."""
    return f"(lambda w: ({window}.{call.format(w=window)}, w)[1])({memory})"


EXPRESSIONS = [
    *(_after(m, w, call) for w, m in _WINDOWS.items() for call in _AGREED),
    *(_after(m, w, call) for w, m in _EXPANDED.items() for call in ("fill_(0.5)", "zero_()", "masked_fill_({w} > -1, 0.5)", "relu_()", "clamp_(1, 3)", "add_(1)", "mul_(2)", "uniform_()", "__setitem__(slice(1, None), 0.5)")),
    _after(_X, "w[:1].expand(4)", "index_fill_(0, n, 0.5)"), _after(_X, "w[:1].expand(4)", "__setitem__(n, 0.5)"), _after(_X, "w[:1].expand(4)", "__setitem__({w} > -1, 0.5)"),
    # of equal places the last one stays, and all are added
    *(_after(_X, "w", f"{name}T.tensor([0, 0, 1], device=on), T.tensor([7.0, 8.0, 9.0], device=on))") for name in ("index_copy_(0, ", "scatter_(0, ", "put_(", "index_add_(0, ", "scatter_add_(0, ", "__setitem__(")),
    _after(_X, "w", "index_put_((T.tensor([0, 0, 1], device=on),), T.tensor([7.0, 8.0, 9.0], device=on))"),
    _after(_X, "w", "index_put_((T.tensor([0, 0, 1], device=on),), T.tensor([7.0, 8.0, 9.0], device=on), accumulate=True)"),
    # tensors that lie on one another, all or in part
    *(_after(_X, "w", call) for call in ("copy_(w)", "mul_(w)", "addcmul_(w, w)", "copy_(w.flip(0))", "masked_fill_(w > 2, w[1])", "masked_scatter_(w > 2, w)")),
    *(f"(lambda w: ({call}, w)[1])({_X})" for call in ("T.add(w[:-1], 1, out=w[1:])", "T.exp(w[:-1], out=w[1:])", "T.cumsum(w[:-1], 0, out=w[1:])", "T.sub(w, w[2], out=w)",
        "T.add(w[:3], w[3:], out=w[:3])", "T.cat([w[:2], w[2:4]], out=w[1:5])", "T.index_select(w, 0, n[1:], out=w[:2])", "T.gather(w, 0, n[1:], out=w[:2])", "T.add(w[:4], 1, out=w[:1].expand(4))")),
]  # fmt: skip
