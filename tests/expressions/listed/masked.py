"""Functions over the elements that a mask shows."""

from __future__ import annotations

_OVER = ("sum", "prod", "amax", "amin", "mean", "var", "std", "logsumexp", "norm")

EXPRESSIONS = [
    *[f"T.masked.{f}({a})" for f in _OVER for a in ("x, mask=k", "x", "x.detach(), mask=x.detach() > 9") if f != "norm"],
    *[f"T.masked.{f}(x, {a})" for f in _OVER for a in ("dim=1, mask=k, keepdim=True", "dim=(0, 1), mask=k", "dim=0", "dim=0, mask=k[0]", "dim=1, dtype=T.float32, mask=k") if f != "norm"],
    *[f"T.masked.norm(x, {a})" for a in ("2, mask=k", "ord=1, dim=1, mask=k", "float('inf'), 0, mask=k", "-1.0, 1, mask=k", "0, dim=0, mask=k", "dim=0, keepdim=True")],
    *[f"T.masked.{f}(x.detach(), {a})" for f in ("argmax", "argmin") for a in ("mask=k", "dim=1, mask=k", "dim=0, keepdim=True, mask=k")],
    *[f"T.masked.{f}(x, {d}, mask=k)" for f in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin") for d in (0, 1)], "T.masked.softmax(x, 1)", "T.masked.cumsum(i, 1, mask=k)",
    *[f"T.masked.normalize(x, {a})" for a in ("2.0, 1, mask=k", "1.0, 0", "float('inf'), 1, mask=k", "2.0, 1, eps=10.0, mask=k")],
    "T.masked.logaddexp(x, y, input_mask=k)", "T.masked.logaddexp(x, y, input_mask=k, other_mask=k)", "T.masked.logaddexp(x, y)", "T.masked.sum(i, mask=k)", "T.masked.prod(k, dim=1)", "T.masked.mean(i, mask=k)",
    "T.masked.amax(i, dim=1, mask=k)", "T.masked.var(x, 1, unbiased=False, mask=k)", "T.masked.std(x, 1, correction=0, mask=k)", "T.masked.sum(x, dim=2, mask=k)",
]  # fmt: skip
# What is otherwise than in PyTorch on purpose: why
MEANT: dict[str, str] = {
    "T.masked.norm(x, -1.0, 1, mask=k)": "what is hidden is not there; in PyTorch it counts as 0, and makes every norm of negative order 0",
}
