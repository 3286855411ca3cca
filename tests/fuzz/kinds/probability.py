"""Distributions: densities, distribution functions and their inverses, moments, shapes, expand, supports, at the ends of their parameters' ranges."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.drawing import array
from tests.fuzz.judges import Judge, beside_torch, equal_pairs, errors, twice
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program

REAL = ("0.0", "-1.5", "0.5", "2.0", "-30.0", "100.0", "1e-3")
POSITIVE = ("1.0", "0.5", "2.0", "1e-3", "30.0", "0.25", "5.0")
UNIT = ("0.5", "0.25", "0.0", "1.0", "1e-6", "0.999999", "0.75", "0.1")
INSIDE = ("0.5", "0.25", "1e-6", "0.999999", "0.75", "0.1")
COUNT = ("0.0", "1.0", "2.0", "5.0")
LOGITS = ("0.0", "-1.5", "2.0", "30.0", "-30.0", "100.0", "-100.0")
Ends = tuple[str, ...]
# name: parameters with what they may be, what log_prob takes, whether cdf, icdf are there
SCALAR: dict[str, tuple[dict[str, Ends], Ends]] = {
    "Normal": ({"loc": REAL, "scale": POSITIVE}, REAL), "Laplace": ({"loc": REAL, "scale": POSITIVE}, REAL), "Cauchy": ({"loc": REAL, "scale": POSITIVE}, REAL), "Gumbel": ({"loc": REAL, "scale": POSITIVE}, REAL),
    "LogNormal": ({"loc": ("0.0", "-1.5", "2.0"), "scale": POSITIVE[:4]}, POSITIVE), "Exponential": ({"rate": POSITIVE}, (*POSITIVE, "0.0")), "Gamma": ({"concentration": POSITIVE, "rate": POSITIVE}, (*POSITIVE, "0.0")), "Beta": ({"concentration1": POSITIVE, "concentration0": POSITIVE}, UNIT),
    "Chi2": ({"df": POSITIVE}, POSITIVE), "StudentT": ({"df": POSITIVE, "loc": REAL, "scale": POSITIVE}, REAL), "Weibull": ({"scale": POSITIVE, "concentration": POSITIVE}, POSITIVE), "Pareto": ({"scale": ("1.0", "0.5"), "alpha": POSITIVE}, ("1.0", "2.0", "30.0")),
    "HalfNormal": ({"scale": POSITIVE}, (*POSITIVE, "0.0")), "HalfCauchy": ({"scale": POSITIVE}, (*POSITIVE, "0.0")), "Uniform": ({"low": ("0.0", "-1.5"), "high": ("2.0", "0.5")}, ("0.0", "0.25", "0.4")), "Kumaraswamy": ({"concentration1": POSITIVE, "concentration0": POSITIVE}, INSIDE),
    "Bernoulli:probs": ({"probs": UNIT}, ("0.0", "1.0")), "Bernoulli:logits": ({"logits": LOGITS}, ("0.0", "1.0")), "Geometric:probs": ({"probs": ("0.5", "0.1", "1.0", "1e-6")}, COUNT), "Geometric:logits": ({"logits": LOGITS}, COUNT), "Poisson": ({"rate": (*POSITIVE, "0.0")}, COUNT),
    "ContinuousBernoulli:probs": ({"probs": INSIDE}, UNIT), "ContinuousBernoulli:logits": ({"logits": LOGITS}, UNIT), "Binomial:probs": ({"total_count": ("5.0", "6.0"), "probs": UNIT}, COUNT), "Binomial:logits": ({"total_count": ("5.0", "6.0"), "logits": LOGITS}, COUNT),
    "NegativeBinomial:probs": ({"total_count": POSITIVE, "probs": ("0.0", "0.5", "0.1", "0.9")}, COUNT), "NegativeBinomial:logits": ({"total_count": POSITIVE, "logits": LOGITS}, COUNT), "VonMises": ({"loc": ("0.0", "1.0", "-2.0"), "concentration": POSITIVE}, ("0.0", "1.0", "-3.0")), "FisherSnedecor": ({"df1": POSITIVE, "df2": POSITIVE}, POSITIVE),
    "InverseGamma": ({"concentration": POSITIVE, "rate": POSITIVE}, POSITIVE), "RelaxedBernoulli:logits": ({"temperature": ("0.5", "2.0"), "logits": LOGITS[:3]}, INSIDE),
}  # fmt: skip
VECTOR: dict[str, tuple[dict[str, Ends], Callable[[random.Random], list[str]]]] = {
    "Categorical:probs": ({"probs": ("0.5", "0.25", "1.0", "0.0", "2.0")}, lambda r: [r.choice("012")]), "Categorical:logits": ({"logits": LOGITS}, lambda r: [r.choice("012")]), "OneHotCategorical:probs": ({"probs": ("0.5", "0.25", "1.0")}, lambda r: ["0.0", "1.0", "0.0"]),
    "Dirichlet": ({"concentration": POSITIVE}, lambda r: ["0.25", "0.25", "0.5"]), "Multinomial:probs": ({"probs": ("0.5", "0.25", "1.0")}, lambda r: ["0.0", "0.0", "1.0"]), "RelaxedOneHotCategorical:logits": ({"temperature": ("0.5",), "logits": LOGITS[:3]}, lambda r: ["0.25", "0.25", "0.5"]),
}  # fmt: skip
ASKED = (
    "mean",
    "variance",
    "stddev",
    "mode",
    "entropy()",
    "batch_shape",
    "event_shape",
    "has_rsample",
    "support.check(at)",
    "logits",
    "probs",
    "param_shape",
    "has_enumerate_support",
)


def _sizes(rng: random.Random) -> tuple[int, ...]:
    return rng.choice(((), (), (2,), (3, 1), (1, 2), (0,)))


def draw(rng: random.Random) -> Program:
    """A distribution, a value, and four or five questions."""
    name = rng.choice([*SCALAR, *SCALAR, *VECTOR])
    dtype = rng.choice(("float32", "float32", "float64"))

    def made(sizes: tuple[int, ...], ends: Ends) -> str:
        return (
            f"tt.full({sizes}, {ends[0]}, dtype=tt.{dtype})"
            if 0 in sizes
            else f"tt.tensor({array(rng, sizes, lambda: rng.choice(ends))}, dtype=tt.{dtype})"
        )

    if name in SCALAR:
        parameters, values = SCALAR[name]
        lines = [
            f"{p} = {made(_sizes(rng) if p != 'temperature' else (), ends)}{'.requires_grad_()' if rng.random() < 0.4 and p != 'total_count' else ''}"
            for p, ends in parameters.items()
        ]
        lines.append(f"at = {made(_sizes(rng), values)}")
    else:
        parameters, value = VECTOR[name]
        batch = rng.choice(((), (2,)))
        lines = [
            f"{p} = {made((*batch, 3) if p != 'temperature' else (), ends)}{'.requires_grad_()' if rng.random() < 0.4 and 'Multi' not in name else ''}"
            for p, ends in parameters.items()
        ]
        lines.append(
            f"at = tt.tensor([{', '.join(value(rng))}], dtype=tt.{dtype})" + ("[0]" if "Categorical:" in name and "Hot" not in name else "")
        )
    given = ", ".join(f"{p}={p}" for p in parameters)
    lines.append(f"d = tt.distributions.{name.partition(':')[0]}({given}{rng.choice(('', '', ', validate_args=False'))})")
    if rng.random() < 0.3:
        lines.append("d = d.expand((2, *d.batch_shape))")
    if rng.random() < 0.2:
        lines.append("d = tt.distributions.Independent(d, len(d.batch_shape))")
    lines += [f"v{k} = d.{asked}" for k, asked in enumerate(rng.sample(ASKED, 4))]
    lines.append("p = d.log_prob(at)")
    if rng.random() < 0.6:
        lines += ["c = d.cdf(at)", f"q = tt.tensor({rng.choice(INSIDE)}, dtype=tt.{dtype})", "i = d.icdf(q)"]
    lines += [
        f"drawn = d.{rng.choice(('sample', 'rsample'))}({rng.choice(('', '(2,)', '(0,)', '(2, 3)'))})",
        "holds0 = bool(d.support.check(drawn).all())",
    ]
    lines.append("p.sum().backward()")
    if rng.random() < 0.3 and name in SCALAR:
        lines += [
            "drawn2 = d.sample((4000,)).double()",
            "holds1 = bool(((drawn2.mean(0) - d.mean).abs() <= 8 * d.stddev / 60 + 1e-3 * d.mean.abs()).logical_or(d.variance.isnan() | d.variance.isinf() | d.mean.isnan() | (d.stddev > 30 * d.mean.abs())).all())",
        ]
    return Program(tuple(lines))


def judges(torch: Any) -> list[Judge]:
    return [beside_torch(torch), equal_pairs] if torch is not None else [errors, twice, equal_pairs]


KIND = Kind("probability", draw, judges, weight=6)
