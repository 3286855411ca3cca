"""The continuous Bernoulli distribution on the unit interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.drawing import draw_in_float32
from tritensor.distributions.exp_family import ExponentialFamily
from tritensor.distributions.lazy import lazy_property
from tritensor.distributions.parameters import (
    as_float_tensor,
    broadcast_all,
    clamp_probs,
    float_limits,
    log_odds,
    logits_to_probs,
    probs_to_logits,
    require_exactly_one,
)
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

# B_2n / (2n)!, n = 1, 2, ...: 1 / (exp(x) - 1) is 1/x - 1/2 and the sum of these times x^(2n - 1)
BERNOULLI_COEFFICIENTS = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)
SERIES_RADIUS = 0.5  # up to here seven of them are exact to the last bit of float64


def _sum_series(square: Tensor, weight: Any) -> Tensor:
    """The sum of weight(n) B_2n / (2n)! x^(2n - 2), by Horner's rule in x^2."""
    found = T.full_like(square, weight(len(BERNOULLI_COEFFICIENTS)) * BERNOULLI_COEFFICIENTS[-1])
    for n in range(len(BERNOULLI_COEFFICIENTS) - 1, 0, -1):
        found = found * square + weight(n) * BERNOULLI_COEFFICIENTS[n - 1]
    return found


def _split_near_zero(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where the series serve, x^2 there, and x elsewhere: each with a harmless value where the other serves."""
    near = x.abs() < SERIES_RADIUS
    return near, T.where(near, x, 0.0).square(), T.where(near, 1.0, x)


def log_constant(rate: Tensor) -> Tensor:
    """log(r / (1 - exp(-r))), r >= 0: what normalises exp(-r y) on [0, 1]."""
    near, square, far = _split_near_zero(rate)
    series = 0.5 * T.where(near, rate, 0.0) - square * _sum_series(square, lambda n: 0.5 / n)
    return T.where(near, series, far.log() - (-(-far).expm1()).log())


class ContinuousBernoulli(ExponentialFamily):
    """exp(l x) l / (exp(l) - 1) of x in [0, 1], l = log(p / (1 - p)) (Loaiza-Ganem and Cunningham, "The continuous Bernoulli", NeurIPS 2019).

    All is computed of l, or of |l| and the distance from the likelier end, which keeps its digits at all l.

    Args:
        probs, logits: p, or log(p / (1 - p)); one of the two.
        lims: accepted, as PyTorch has it; the series that stand in around 1/2 are exact here.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _fields: ClassVar[dict[str, int | None] | None] = {"probs": 0, "logits": 0, "_log_odds": 0, "_lims": None}

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        given = require_exactly_one("ContinuousBernoulli", probs=probs, logits=logits)
        if given == "probs":
            (self.probs,) = broadcast_all(probs)
            if validate_args:
                self._require("the parameter probs", self.probs, constraints.unit_interval, "(or validate_args=False to skip the check)")
            self._log_odds = log_odds(self.probs)  # before the clamp, which cuts off the digits at the ends
            self.probs = clamp_probs(self.probs)
        else:
            self.logits = as_float_tensor(logits)
            self._log_odds = self.logits
        self._lims = lims  # PyTorch's attribute; no formula here has a gap around 1/2
        super().__init__(self.__dict__[given].shape, validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """p."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def param_shape(self) -> Size:
        """The parameter's shape."""
        return self._log_odds.size()

    def _rate(self) -> Tensor:
        """|l|: at which rate the density falls from the likelier end."""
        return T.where(self._log_odds < 0, -self._log_odds, self._log_odds)

    def _measure_from_likelier_end(self, y: Tensor) -> Tensor:
        """The point that lies y from the likelier end; and how far a point lies from there."""
        return T.where(self._log_odds < 0, y, 1 - y)

    def _mean_distance(self) -> Tensor:
        """The mean distance from the likelier end: 1 / r - 1 / (exp(r) - 1)."""
        near, square, far = _split_near_zero(self._rate())
        series = 0.5 - T.where(near, self._rate(), 0.0) * _sum_series(square, lambda n: 1.0)
        return T.where(near, series, far.reciprocal() - far.expm1().reciprocal())

    @property
    def mean(self) -> Tensor:
        return self._measure_from_likelier_end(self._mean_distance())

    @property
    def variance(self) -> Tensor:
        """1 / r^2 - 1 / (4 sinh(r / 2)^2)."""
        near, square, far = _split_near_zero(self._rate())
        exact = far.square().reciprocal() - (2 * (0.5 * far).sinh()).square().reciprocal()
        return T.where(near, _sum_series(square, lambda n: 2.0 * n - 1), exact)

    @draw_in_float32
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(T.rand(tuple(self._extended_shape(sample_shape)), dtype=self._log_odds.dtype, device=self._log_odds.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate = self._rate()
        return log_constant(rate) - rate * self._measure_from_likelier_end(value)

    def cdf(self, value: Tensor) -> Tensor:
        """(exp(l x) - 1) / (exp(l) - 1)."""
        self._check(value)
        x, odds = broadcast_all(value, self._log_odds)
        # the quotient is 0 / 0 at l = 0; the series' first term left out is of fourth order
        near = odds.abs() < float_limits(odds.dtype).eps ** 0.25
        small = T.where(near, odds, 0.0)
        c = x * (x - 1)
        series = x + small * c * (0.5 + small * (2 * x - 1) / 12 + small.square() * c / 24)
        rate = T.where(near, 1.0, self._rate())
        risen = T.where(odds < 0, (-rate * x).expm1(), (-rate * (1 - x)).exp() * (-rate * x).expm1())
        inside = T.where(near, series, risen / (-rate).expm1())
        return T.where(x <= 0.0, T.zeros_like(inside), T.where(x >= 1.0, T.ones_like(inside), inside))

    def icdf(self, value: Tensor) -> Tensor:
        """log(1 + u (exp(l) - 1)) / l."""
        u, odds = broadcast_all(value, self._log_odds)
        # as in cdf; the first term left out is of third order
        near = odds.abs() < float_limits(odds.dtype).eps ** (1 / 3)
        small = T.where(near, odds, 0.0)
        series = u + small * u * (1 - u) * (0.5 + small * (1 - 2 * u) / 6)
        rate = T.where(near, 1.0, self._rate())
        w, rest = T.where(odds < 0, u, 1 - u), T.where(odds < 0, 1 - u, u)
        low = w < 0.5  # of the two forms of log(1 - w (1 - exp(-r))) the one that keeps its digits
        left = T.where(low, (T.where(low, w, 0.0) * (-rate).expm1()).log1p(), (T.where(low, 0.5, rest) + w * (-rate).exp()).log())
        found = T.where(near, series, self._measure_from_likelier_end((-left / rate).clamp(max=1.0)))
        plain = (odds > 0) & (odds < 60) & ~near  # where the formula as it stands neither overflows nor cancels
        up = T.where(plain, odds, 1.0)
        return T.where(plain, (u * up.expm1()).log1p() / up, found)

    def entropy(self) -> Tensor:
        rate = self._rate()
        near, square, far = _split_near_zero(rate)
        series = -square * _sum_series(square, lambda n: 1 - 0.5 / n)
        return T.where(near, series, far * self._mean_distance() - log_constant(far))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self._log_odds,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """log((exp(x) - 1) / x)."""
        return T.where(x > 0, x, 0.0) - log_constant(T.where(x < 0, -x, x))
