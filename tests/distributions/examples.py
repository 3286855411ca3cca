"""Examples of every distribution: an expression, and what its parameters are. Tests evaluate them in tritensor, and beside it in torch and scipy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_PD = [[2.0, 0.5], [0.5, 1.0]]
_PD3 = [[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]]
_TRIL = [[1.2, 0.0], [-0.4, 0.7]]


class Example(NamedTuple):
    """D is the module of distributions, T its transforms, a, b, c, ... the parameters."""

    expression: str
    parameters: tuple[Any, ...]

    @property
    def name(self) -> str:
        return self.expression[2 : self.expression.index("(")]

    def made(self, library: Any, tensors: tuple[Any, ...]) -> Any:
        """The distribution of given tensors."""
        names = dict(zip("abcdef", tensors, strict=False))
        return eval(self.expression, {"D": library.distributions, "T": library.distributions.transforms, **names})

    def of(self, library: Any, requires_grad: bool = False, dtype: str = "float64") -> tuple[Any, tuple[Any, ...]]:
        """The distribution and its parameters, in a type."""
        kind = getattr(library, dtype)
        tensors = tuple(
            library.tensor(np.asarray(p, np.float64).tolist(), dtype=kind, requires_grad=requires_grad) for p in self.parameters
        )
        return self.made(library, tensors), tensors


def _each(expression: str, *sets: Any) -> list[Example]:
    return [Example(expression, s if isinstance(s, tuple) else (s,)) for s in sets]


EXAMPLES = [
    *_each("D.Bernoulli(a)", 0.3, [0.7, 0.2, 0.4], [[0.5], [0.9]]),
    *_each("D.Bernoulli(logits=a)", [0.3, -1.2], 2.0),
    *_each("D.Beta(a, b)", (1.5, 2.5), ([0.5, 3.0], [4.0, 0.7]), ([[2.0], [5.0]], [1.0, 9.0])),
    *_each("D.Binomial(5, a)", 0.3, [0.2, 0.8]),
    *_each("D.Binomial(a, logits=b)", ([3.0, 7.0], [0.3, -1.0])),
    *_each("D.Categorical(a)", [0.2, 0.5, 0.3], [[0.2, 0.8], [1.0, 3.0]]),
    *_each("D.Categorical(logits=a)", [[0.1, -2.0, 1.0], [0.0, 0.0, 0.5]]),
    *_each("D.Cauchy(a, b)", (0.0, 1.0), ([0.5, -1.0], [2.0, 0.3]), ([[1.0], [2.0]], [0.5, 1.5])),
    *_each("D.Chi2(a)", 3.0, [0.7, 12.0], [[5.0]]),
    *_each("D.ContinuousBernoulli(a)", 0.3, [0.5, 0.4, 0.9], [[0.1], [0.7]]),
    *_each("D.ContinuousBernoulli(logits=a)", [0.4, -2.0]),
    *_each("D.Dirichlet(a)", [0.5, 2.0, 3.0], [[0.4, 0.6], [3.0, 1.0]], [[[5.0, 6.0, 7.0, 1.5]]]),
    *_each("D.Exponential(a)", 1.3, [0.2, 4.0], [[1.0], [2.0]]),
    *_each("D.FisherSnedecor(a, b)", (3.0, 5.0), ([1.0, 8.0], [3.0, 12.0]), ([[2.5]], [4.5, 20.0])),
    *_each("D.Gamma(a, b)", (1.5, 2.0), ([0.4, 30.0], [1.0, 0.5]), ([[1.0], [3.0]], [2.0, 7.0])),
    *_each("D.GeneralizedPareto(a, b, c)", (0.5, 1.5, 0.3), ([0.0, 1.0], [1.0, 2.0], [-0.4, 0.0]), (0.0, [[1.0], [2.0]], [0.1, 0.7])),
    *_each("D.Geometric(a)", 0.3, [0.9, 0.2], [[0.5]]),
    *_each("D.Geometric(logits=a)", [0.3, -1.0]),
    *_each("D.Gumbel(a, b)", (0.0, 1.0), ([0.5, -1.0], [2.0, 0.3]), ([[1.0], [2.0]], [0.5, 1.5])),
    *_each("D.HalfCauchy(a)", 1.3, [0.2, 4.0], [[1.0], [2.0]]),
    *_each("D.HalfNormal(a)", 1.3, [0.2, 4.0], [[1.0], [2.0]]),
    *_each("D.Independent(D.Normal(a, b), 1)", ([0.5, -1.0], [2.0, 0.3]), ([[1.0], [2.0]], [0.5, 1.5]), ([[[1.0, 2.0]]], 1.0)),
    *_each("D.Independent(D.Bernoulli(a), 0)", [0.3, 0.6]),
    *_each("D.InverseGamma(a, b)", (1.5, 2.0), ([0.4, 30.0], [1.0, 0.5]), ([[2.5], [3.0]], [2.0, 7.0])),
    *_each("D.Kumaraswamy(a, b)", (1.5, 2.5), ([0.5, 3.0], [4.0, 0.7]), ([[2.0], [5.0]], [1.5, 9.0])),
    *_each("D.LKJCholesky(3, a)", 1.0, [0.5, 2.5]),
    *_each("D.LKJCholesky(4, a)", [[1.5], [3.0]]),
    *_each("D.Laplace(a, b)", (0.0, 1.0), ([0.5, -1.0], [2.0, 0.3]), ([[1.0], [2.0]], [0.5, 1.5])),
    *_each("D.LogNormal(a, b)", (0.0, 1.0), ([0.5, -1.0], [0.7, 0.3]), ([[1.0], [2.0]], [0.5, 1.5])),
    *_each("D.LogisticNormal(a, b)", ([0.5, -1.0], [0.7, 0.3]), ([[1.0, 2.0, 0.0]], [0.5, 1.5, 1.0]), (0.3, 0.6)),
    *_each("D.LowRankMultivariateNormal(a, b, c)",
           ([0.5, -1.0], [[1.0], [0.5]], [0.5, 0.2]), ([[0.5, -1.0, 2.0], [0.0, 1.0, 0.0]], [[1.0, 0.2], [0.5, 0.0], [0.0, 1.0]], [0.5, 0.2, 1.0]),
           ([0.5, -1.0], [[[1.0], [0.5]], [[2.0], [-0.5]]], [[0.5, 0.2], [1.0, 0.4]])),
    *_each("D.MixtureSameFamily(D.Categorical(a), D.Normal(b, c))",
           ([0.3, 0.7], [0.0, 2.0], [1.0, 0.5]), ([[0.3, 0.7], [0.5, 0.5]], [[0.0, 2.0], [1.0, -1.0]], [1.0, 0.5])),
    *_each("D.MixtureSameFamily(D.Categorical(logits=a), D.Independent(D.Normal(b, c), 1))", ([0.3, 0.7], [[0.0, 2.0], [1.0, 1.0]], 1.0)),
    *_each("D.MixtureSameFamily(D.Categorical(a), D.MultivariateNormal(b, c))", ([0.3, 0.7], [[0.0, 2.0], [1.0, 1.0]], _PD)),
    *_each("D.Multinomial(4, a)", [0.2, 0.5, 0.3], [[0.2, 0.8], [1.0, 3.0]]),
    *_each("D.Multinomial(3, logits=a)", [0.2, -0.5, 1.0]),
    *_each("D.MultivariateNormal(a, b)", ([0.5, -1.0], _PD), ([[0.5, -1.0], [0.0, 0.0]], _PD), ([0.5, -1.0, 0.0], [[_PD3], [_PD3]])),
    *_each("D.MultivariateNormal(a, precision_matrix=b)", ([0.5, -1.0], _PD), ([[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]], _PD3)),
    *_each("D.MultivariateNormal(a, scale_tril=b)", ([0.5, -1.0], _TRIL), ([[0.5, -1.0], [0.0, 0.0]], [_TRIL, _TRIL])),
    *_each("D.NegativeBinomial(a, b)", (3.0, 0.3), ([0.5, 6.0], [0.6, 0.2]), ([[2.0]], [0.1, 0.4])),
    *_each("D.NegativeBinomial(a, logits=b)", ([0.5, 6.0], [0.6, -0.2])),
    *_each("D.Normal(a, b)", (0.0, 1.0), ([0.5, -1.0], [2.0, 0.3]), ([[1.0], [2.0]], [0.5, 1.5])),
    *_each("D.OneHotCategorical(a)", [0.2, 0.5, 0.3], [[0.2, 0.8], [1.0, 3.0]]),
    *_each("D.OneHotCategorical(logits=a)", [[0.1, -2.0, 1.0]]),
    *_each("D.OneHotCategoricalStraightThrough(a)", [0.2, 0.5, 0.3], [[0.2, 0.8], [1.0, 3.0]]),
    *_each("D.Pareto(a, b)", (1.0, 3.0), ([0.5, 2.0], [0.7, 1.5]), ([[1.0], [2.0]], [2.5, 4.0])),
    *_each("D.Poisson(a)", 1.3, [0.2, 14.0], [[1.0], [2.0]]),
    *_each("D.RelaxedBernoulli(a, b)", (0.7, 0.3), (2.0, [0.7, 0.2]), (0.5, [[0.5], [0.9]])),
    *_each("D.RelaxedBernoulli(a, logits=b)", (0.7, [0.3, -1.0])),
    *_each("D.RelaxedOneHotCategorical(a, b)", (0.7, [0.2, 0.5, 0.3]), (2.0, [[0.2, 0.8], [1.0, 3.0]])),
    *_each("D.RelaxedOneHotCategorical(a, logits=b)", (0.7, [0.2, -0.5, 0.3])),
    *_each("D.StudentT(a)", 3.0, [0.7, 12.0]),
    *_each("D.StudentT(a, b, c)", (2.5, 0.5, 2.0), ([[1.5], [4.0]], [0.5, 1.0], 0.7)),
    *_each("D.TransformedDistribution(D.Normal(a, b), T.ExpTransform())", ([0.5, -1.0], [0.7, 0.3])),
    *_each("D.TransformedDistribution(D.Normal(a, b), [T.TanhTransform(), T.AffineTransform(1.0, -2.0)])", (0.5, 0.7), ([[1.0], [2.0]], [0.5, 1.5])),
    *_each("D.TransformedDistribution(D.Uniform(a, b), [T.SigmoidTransform().inv, T.AffineTransform(c, d)])", (0.0, 1.0, 0.3, [2.0, 0.5])),
    *_each("D.TransformedDistribution(D.Normal(a, b), [T.StickBreakingTransform()])", ([0.5, -1.0], [0.7, 0.3])),
    *_each("D.Uniform(a, b)", (0.0, 1.0), ([0.5, -1.0], [2.0, 0.3]), ([[1.0], [2.0]], [2.5, 3.5])),
    *_each("D.VonMises(a, b)", (0.0, 1.0), ([0.5, -1.0], [12.0, 0.3]), ([[1.0], [2.0]], [0.5, 150.0])),
    *_each("D.Weibull(a, b)", (1.0, 3.0), ([0.5, 2.0], [1.7, 1.5]), ([[1.0], [2.0]], [2.5, 4.0])),
    *_each("D.Wishart(a, b)", (3.0, _PD), ([4.0, 7.5], _PD3), (5.0, [_PD, _PD])),
    *_each("D.Wishart(a, precision_matrix=b)", (3.5, _PD)),
    *_each("D.Wishart(a, scale_tril=b)", (2.5, _TRIL)),
]  # fmt: skip
IDS = [f"{e.expression}-{k}" for k, e in enumerate(EXAMPLES)]
