"""Formulas of y = act(z), z = (x - mean) r w + b + residual, r = 1 / sqrt(var + eps), and of its gradient: made anew for each activation.

The gradient takes z from x again: nothing but what the normalisation keeps is kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import triton

from tritensor.kernels.normalization.affine import away
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.formulas.named import BY_INPUT
from tritensor.kernels.parts.half_precision.variants import half_variants
from tritensor.kernels.parts.reduction import ReductionFunctions, add_pairs, zero
from tritensor.kernels.parts.templates.template_args import bound

NAMES = tuple(BY_INPUT)


@triton.jit
def inside(x, mean, var, w, b, eps):
    return (x - mean) * maths.rsqrt(var + eps.to(var.dtype)) * w + b


# Templates: `act` is the activation, `slope` its gradient.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-untyped-def"
def _plain(x, mean, var, w, b, index, eps):
    return act(inside(x, mean, var, w, b, eps))


def _added(x, residual, mean, var, w, b, index, eps):
    return act(inside(x, mean, var, w, b, eps) + residual)


# u = g act'(z), and u (x - mean)
def _products(x, g, mean, var, w, b, index, eps):
    u = slope(g, inside(x, mean, var, w, b, eps))
    return u, u * (x - mean)


def _products_added(x, residual, g, mean, var, w, b, index, eps):
    u = slope(g, inside(x, mean, var, w, b, eps) + residual)
    return u, u * (x - mean)


# dx of one weight for all that share a mean; of weights within, whose sums su and suc have them already; and beside dx that of the residual, u
def _back(x, g, mean, var, w, b, su, suc, index, n, eps):
    return away(x, slope(g, inside(x, mean, var, w, b, eps)), mean, var, su, suc, n, eps) * w


def _back_within(x, g, mean, var, w, b, su, suc, index, n, eps):
    return away(x, slope(g, inside(x, mean, var, w, b, eps)) * w, mean, var, su, suc, n, eps)


def _back_added(x, residual, g, mean, var, w, b, su, suc, index, n, eps):
    u = slope(g, inside(x, mean, var, w, b, eps) + residual)
    return away(x, u, mean, var, su, suc, n, eps) * w, u


# dx where mean and variance are given
def _back_given(x, g, mean, var, w, b, index, eps):
    return slope(g, inside(x, mean, var, w, b, eps)) * (maths.rsqrt(var + eps.to(var.dtype)) * w)


def _back_given_added(x, residual, g, mean, var, w, b, index, eps):
    u = slope(g, inside(x, mean, var, w, b, eps) + residual)
    return u * (maths.rsqrt(var + eps.to(var.dtype)) * w), u


class Formulas(NamedTuple):
    """Those of one activation: forward; the sums of u and of u (x - mean); dx, and dx of given mean and variance, each with the residual's gradient
    where one is added."""

    forward: Any
    products: ReductionFunctions
    backward: Any
    backward_given: Any


@cache
def of(activation: str, dtype: np.dtype, added: bool = False, within: bool = False) -> Formulas:
    """The formulas for arrays of `dtype`: whether a residual is `added`, whether weights differ `within` what shares a mean."""
    # cached: a formula is a constant of the kernel, which would be compiled again for a new one
    named, label = BY_INPUT[activation], f"{activation}_{dtype.itemsize}"
    act, slope = half_variants((named.formula, named.gradient), (dtype, dtype), False)

    def made(template: Any) -> Any:
        return bound(template, label, act=act, slope=slope)

    products = ReductionFunctions(made(_products_added if added else _products), add_pairs, None, zero)
    backward = made(_back_added if added else _back_within if within else _back)
    return Formulas(made(_added if added else _plain), products, backward, made(_back_given_added if added else _back_given))
