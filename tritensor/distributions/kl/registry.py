"""kl_divergence, and the registry of its formulas by pairs of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tritensor.distributions.distribution import Distribution
from tritensor.tensor.core import Tensor

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
# The answers so far: the search compares with every registered pair.
_found: dict[tuple[type, type], Callable[[Any, Any], Tensor] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[[Any, Any], Tensor]], Callable[[Any, Any], Tensor]]:
    """A decorator: `formula(p, q)` is kl_divergence of these classes and of their subclasses. Raises TypeError for what is no class."""
    for which, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):  # of any: other libraries' distributions need not derive from ours
            raise TypeError(f"register_kl: {which} is {kind!r}; give a class of distributions")

    def decorate(formula: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _KL_REGISTRY[type_p, type_q] = formula
        _found.clear()  # the new one may be nearer to pairs that were looked up before
        return formula

    return decorate


def _formula(type_p: type, type_q: type) -> Callable[[Any, Any], Tensor] | None:
    """The formula of the nearest registered pair: nearest by p's class first; a warning where nearest by q's class first is another."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return None
    up_p, up_q = type_p.__mro__.index, type_q.__mro__.index
    left = min(pairs, key=lambda pair: (up_p(pair[0]), up_q(pair[1])))
    right = min(pairs, key=lambda pair: (up_q(pair[1]), up_p(pair[0])))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"kl_divergence({type_p.__name__}, {type_q.__name__}): the formulas of ({left[0].__name__}, {left[1].__name__}) and "
            f"({right[0].__name__}, {right[1].__name__}) fit as well as each other; register_kl({left[0].__name__}, {right[1].__name__}) would decide",
            RuntimeWarning,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q) = E_p log(p(x) / q(x)), one number for each of the batch.

    Raises NotImplementedError for pairs of classes that no formula is registered for.
    """
    pair = type(p), type(q)
    if pair not in _found:
        _found[pair] = _formula(*pair)
    formula = _found[pair]
    if formula is None:
        raise NotImplementedError(
            f"kl_divergence: no formula for p {type(p).__name__} and q {type(q).__name__}; give one with "
            f"@register_kl({type(p).__name__}, {type(q).__name__}), or average p.log_prob(x) - q.log_prob(x) over draws x of p"
        )
    return formula(p, q)
