"""Running products and extrema, differences and integrals, covariances, histograms, distances."""

from __future__ import annotations

_RUNNING = ("cumprod", "cummax", "cummin", "logcumsumexp")

EXPRESSIONS = [
    *[f"T.{f}({t}, {d})" for f in _RUNNING for t, d in (("x", 0), ("x", 1), ("b", "dim=-2"), ("v", 0), ("i", 1), ("e", 0), ("o", 0), ("s", 0), ("x", 2), ("x", "'a'"), ("f", -1))
      if (f, t) != ("cumprod", "s") and (f, t, d) != ("logcumsumexp", "s", 0)],
    "T.cumprod(k, 1)", "T.cumprod(u, 0)", "T.cumprod(i, 0, dtype=T.float32)", "x.clone().cumprod_(1)", "T.cumprod(x * (x > 1), 1)", "T.cumulative_prod(v) ~ T.cumprod(v, 0)",
    "T.cumprod(T.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=T.float64, device=on) * v[0], 0)", "T.cummax(k, 0)", "T.cummin(u, 1)", "T.cummax(x, 1).values", "T.cummin(x, 0).indices", "x.cummax(dim=1)[0]",
    "T.cummax(T.tensor([1.0, 1.0, 0.5, 1.0, float('nan'), 2.0, float('nan')], device=on), 0)", "T.cummin(T.tensor([1.0, 1.0, 0.5, 0.5, float('nan'), 0.1], device=on), 0)",
    "T.logcumsumexp(x * 300, 1)", "T.logcumsumexp(T.tensor([float('-inf'), 0.0, float('-inf'), 2.0], device=on), 0)", "T.logcumsumexp(T.tensor([0.0, float('inf'), 1.0, float('nan'), 1.0], device=on), 0)",
    *[f"T.diff({a})" for a in ("x", "v", "x, 2", "x, dim=0", "x, n=0", "x, n=5", "i", "k", "x, prepend=y", "x, append=y, dim=0", "x, 2, 1, y, y", "x, prepend=v", "x, prepend=v.reshape(1, 3)", "o", "e", "x, n=-1", "x, dim=2", "u")],
    "x.diff(n=2, dim=-1)",
    *[f"T.gradient({a})" for a in ("x", "v", "b", "x, dim=1", "x, dim=(1, 0)", "v, spacing=0.5", "x, spacing=(2.0, 0.5)", "m, spacing=(v * v, v.exp())", "m, edge_order=2", "m, dim=1, spacing=[v.exp()], edge_order=2", "v, edge_order=3", "o", "x, spacing=[1.0]",
      "x, spacing=(v, v)", "x, dim=(0, 0)", "v, edge_order=2, spacing=2.0", "b, dim=2, spacing=[v.exp()]", "i", "x, edge_order=2")],
    *[f"T.{f}({a})" for f in ("trapezoid", "cumulative_trapezoid") for a in ("v", "x", "x, dim=0", "x, dx=0.5", "x, y", "x, v", "x, v[:2], dim=0", "x, dx=2.0, dim=0", "i", "e", "x, v[:2]", "x, y, dim=0", "k", "x, n")],
    "T.trapz(x, v)", "T.trapz(x, dim=0)", "T.trapz(v, dx=2.0)", "T.trapezoid(x, y, dx=1.0)",
    "T.cov(m)", "T.cov(x)", "T.cov(v)", "T.cov(o)", "T.cov(m, correction=0)", "T.cov(m, fweights=T.tensor([1, 2, 3], device=on))", "T.cov(m, aweights=T.tensor([0.5, 2.0, 3.0], dtype=T.float64, device=on))", "m.cov(correction=2)", "T.cov(i)", "T.cov(b)", "T.cov(k)",
    "T.cov(m, fweights=v)", "T.cov(m, fweights=T.tensor([1, -2, 3], device=on))", "T.cov(m, fweights=T.tensor([1, 2], device=on))", "T.cov(m, aweights=T.tensor([1, 2, 3], device=on))", "T.cov(m, fweights=T.tensor([[1, 2, 3]], device=on))", "T.cov(x, correction=3)",
    "T.cov(m, correction=0, fweights=T.tensor([1, 2, 3], device=on), aweights=T.tensor([0.5, 2.0, 3.0], dtype=T.float64, device=on))", "T.corrcoef(m)", "T.corrcoef(x)", "T.corrcoef(v)", "m.corrcoef()", "T.corrcoef(i)", "T.corrcoef(b)",
    "T.histc(x)", "T.histc(x, 4)", "T.histc(x, bins=5, min=-1, max=2)", "x.histc(4, -1, 2)", "T.histc(e, 3)", "T.histc(o, 3)", "T.histc(f, 2)", "T.histc(s, 4, -1, 1)", "T.histc(x, 0)", "T.histc(x, 3, 2, 1)", "T.histc(s, 4)", "T.histc(k, 2)", "T.histc(x, min=1, max=1, bins=3)",
    "T.histogram(x.detach(), 4)", "T.histogram(x.detach(), 3, range=(-1.0, 2.0))", "T.histogram(x.detach(), 3, density=True)", "T.histogram(x.detach(), T.tensor([-2.0, 0.0, 0.5, 3.0], dtype=T.float64, device=on))", "T.histogram(x.detach(), 4, weight=y.detach())", "x.detach().histogram(2).hist", "T.histogram(x.detach(), 0)", "T.histogram(i, 3)",
    "T.histogram(x.detach(), 3, weight=v.detach())", "T.histogram(x.detach(), T.tensor([-2.0, 0.0], device=on))", "T.histogram(x.detach(), 3, range=(2.0, 1.0))", "T.histogram(x.detach(), 2, range=(-1.0, 2.0), weight=y.detach(), density=True).hist", "T.histogram(e, 2)", "T.histogram(x.detach(), m)", "T.histogram(s, 3)",
    "T.histogramdd(m.detach()[:, :2], [2, 3])", "T.histogramdd(m.detach(), 2)", "T.histogramdd(m.detach()[:, :2], bins=[2, 2], range=[-2.0, 2.0, -1.0, 1.0])", "T.histogramdd(m.detach()[:, :2], [2, 2], weight=v.detach())", "T.histogramdd(m.detach()[:, :2], [2, 2], density=True).hist", "T.histogramdd(m.detach(), [2, 2])",
    "T.histogramdd(v.detach(), [2])", "T.histogramdd(m.detach()[:, :2], (T.tensor([-2.0, 0.0, 2.0], dtype=T.float64, device=on), T.tensor([-1.0, 1.0], dtype=T.float64, device=on)))", "T.histogramdd(m.detach(), 2, range=[0.0, 1.0])",
    "T.bincount(n)", "T.bincount(n, minlength=6)", "T.bincount(n, v.detach())", "T.bincount(n, f[n % 2])", "n.bincount(n)", "T.bincount(j.flatten())", "T.bincount(u.flatten())", "T.bincount(i.flatten())", "T.bincount(i)", "T.bincount(v)", "T.bincount(n, f)",
    "T.bincount(n, minlength=-1)", "T.bincount(n[:0])", "T.bincount(n[:0], minlength=2)", "T.bincount(o)",
    "T.renorm(m, 2, 0, 1.0)", "T.renorm(b, 1, 1, 2.0)", "m.renorm(2, 1, 0.5)", "m.clone().renorm_(p=2, dim=0, maxnorm=1)", "T.renorm(m, 0, 0, 1.0)", "T.renorm(m, 2, 0, -1.0)", "T.renorm(v, 2, 0, 1.0)", "T.renorm(m, 3, -1, 1.0)", "T.renorm(m, 2, 2, 1.0)",
    *[f"T.cdist(x, y, {p})" for p in ("p=2", "p=1", "p=0", "p=3.0", "p=0.5", "p=float('inf')")], "T.cdist(x, x)", "T.cdist(b, m)", "T.cdist(b, b[0])", "T.cdist(x, v)", "T.cdist(x, m[:, :2])", "T.cdist(x, y, -1.0)", "T.cdist(x, y.float())", "T.cdist(i, i)",
    "T.cdist(x, y, compute_mode='use_mm_for_euclid_dist')", "T.cdist(x, y, compute_mode='donot_use_mm_for_euclid_dist')", "T.cdist(x, y, compute_mode='none')", "T.cdist(x[:0], y)", "T.cdist(x[:, :0], y[:, :0])", "T.cdist(x, y[:0])",
    *[f"T.pdist(m, {p})" for p in ("p=2", "p=1", "p=0", "p=3.0", "p=float('inf')")], "F.pdist(m)", "T.pdist(v)", "T.pdist(m[:1])", "T.pdist(m, -1.0)", "T.pdist(i)", "x.dist(y)", "x.dist(y, 1)", "T.dist(x, v, float('inf'))",
    "T.max(x, 2.0)", "T.min(x, other=y)", "T.count_nonzero(b, dim=(0, 2))", "T.all(k, dim=(0, 1))", "T.any(k, dim=(0, 1), keepdim=True)", "T.aminmax(x, dim=1)", "T.aminmax(x).min", "T.std_mean(b, (0, 1), keepdim=True)", "T.var_mean(b, dim=(1, 2), correction=0)",
    "T.logsumexp(i, 0)", "T.nansum(s)", "T.nanmean(s[:5])", "T.mean(i, dtype=T.float32)", "T.norm(m, 'fro', dim=(0, 1))", "T.norm(x, 2.5, dim=(0, 1), keepdim=True)", "T.norm(f, dtype=T.float64)", "T.prod(i, 0, dtype=T.float64)", "T.sum(b, (0, 2), dtype=T.float32)",
    "T.trapezoid(i[:, :0].int())", "T.cumulative_trapezoid(i[:, :0].int())", "T.cumulative_trapezoid(i.to(T.int8), dx=2)",
]  # fmt: skip
# What is otherwise than in PyTorch on purpose: why
MEANT: dict[str, str] = {
    "T.gradient(x, spacing=(v, v))": "three coordinates for two samples are a slip, which PyTorch does not see",
}
