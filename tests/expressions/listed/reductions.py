"""Sums, extremes, quantifiers, norms, running sums."""

from __future__ import annotations

EXPRESSIONS = [
    "T.max(b, (0, 2)) ~ T.amax(b, (0, 2))", "T.min(b, (1,), keepdim=True) ~ T.amin(b, (1,), keepdim=True)",
    *[f"x.{f}()" for f in ("sum", "mean", "prod", "var", "std", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "nansum", "nanmean", "norm")],
    *[f"T.{f}(x, {d})" for f in ("sum", "mean", "prod", "var", "std", "amax", "amin", "argmax", "argmin", "any", "all", "logsumexp", "max", "min", "aminmax")
      for d in ("dim=0", "dim=-1, keepdim=True", "dim=2")],
    *[f"T.{f}(x, dim=(0, 1))" for f in ("sum", "mean", "var", "std", "amax", "amin", "logsumexp", "any", "nansum")],
    *[f"T.{f}(x, dim=(0, 0))" for f in ("sum", "mean", "var", "amax", "logsumexp", "any")],
    *[f"T.{f}(s)" for f in ("sum", "nansum", "mean", "nanmean", "prod", "amax", "max", "argmax", "argmin", "var", "any", "all", "cumsum", "logsumexp")
      if f not in ("cumsum", "logsumexp")],
    *[f"T.{f}(i)" for f in ("sum", "prod", "amax", "amin", "max", "min", "argmax", "any", "all", "mean", "count_nonzero")],
    *[f"T.{f}(k)" for f in ("sum", "prod", "any", "all", "count_nonzero")],
    *[f"T.{f}(u)" for f in ("sum", "prod", "any", "all", "amax")],
    *[f"T.{f}(e)" for f in ("sum", "mean", "prod", "any", "all", "var", "amax", "max", "argmax")],
    *[f"T.{f}(o)" for f in ("sum", "mean", "prod", "any", "var", "amax", "max", "argmax")],
    "x.sum(0, dtype=T.float32)", "i.sum(dtype=T.float32)", "i.mean(dtype=T.float64)", "x.sum(axis=1)", "x.mean(axis=0, keepdim=True)", "x.var(0, unbiased=False)",
    "x.std(1, False)", "x.var(correction=0)", "x.var(dim=1, correction=2, keepdim=True)", "x.std(correction=0.5)", "T.var_mean(x, dim=1)", "T.std_mean(x)",
    "T.std_mean(x, dim=0, unbiased=False)", "T.var_mean(x, correction=0)", "T.max(x, y)", "T.min(x, y)", "x.max(1)[1]", "x.min(dim=0).indices", "x.max(0, True)[0]",
    "T.cumsum(x, 0)", "T.cumsum(x, dim=-1)", "T.cumsum(i, 1)", "T.cumsum(k, 1)", "T.cumsum(x, 1, dtype=T.float32)", "x.clone().cumsum_(0)", "T.cumsum(o, 0)",
    "T.cumulative_sum(v) ~ T.cumsum(v, 0)", "T.count_nonzero(x, dim=1)", "T.norm(x, 1)", "T.norm(x, 3, dim=1)", "T.norm(x, float('inf'), dim=0)",
    "T.norm(x, -float('inf'))", "T.norm(x, 0)", "T.norm(x, 'fro')", "T.norm(x, 'nuc')", "T.norm(x, dim=1, keepdim=True)", "T.dist(x, y)", "T.dist(x, y, 1)",
    "T.softmax(x, 1)", "T.softmax(x, dim=0)", "T.log_softmax(x, -1)", "x.softmax(1, dtype=T.float32)", "T.logsumexp(x, 1)", "T.logsumexp(x, (0, 1))",
    *[f"T.{f}({given}, 0, out=T.zeros({shape}, dtype=T.{t}, device=on))" for f, shape in (("sum", "3"), ("prod", "3"), ("mean", "3"), ("nanmean", "3"), ("cumsum", "2, 3"), ("cumprod", "2, 3"))
      for given in ("y.detach()", "i", "k", "u", "f[:1].expand(2, 3)") for t in ("int64", "uint8", "float32", "float64", "bool")],
    *[f"T.{f}(x.detach(), 0, dtype=T.float32, out=T.zeros(0, dtype=T.{t}, device=on))" for f in ("sum", "prod", "mean", "nansum", "cumsum") for t in ("float32", "float64")],
    *[f"T.{f}(k, 0, dtype=T.bool)" for f in ("sum", "prod", "cumsum", "cumprod")], "T.sum(x, 0, out=T.zeros(3, dtype=T.float64, device=on))",
]  # fmt: skip
