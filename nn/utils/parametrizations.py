"""Parametrizations of weights: orthogonal matrices, a norm and a direction, a largest singular value of 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn import functional as F
from tritensor.nn import hooks
from tritensor.nn.module import Module
from tritensor.nn.utils.parametrize import register_parametrization
from tritensor.nn.utils.spectral_norm import as_matrix, draw_vectors, iterate, outputs_dim
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import eye, zeros_like
from tritensor.tensor.functions.creation.random import randn
from tritensor.tensor.functions.factorizations.norms import norm_except_dim
from tritensor.tensor.functions.factorizations.orthogonal import householder_product
from tritensor.tensor.functions.factorizations.powers import matrix_exp
from tritensor.tensor.functions.factorizations.solving import solve

MAPS = ("matrix_exp", "cayley", "householder")


def get_weight(name: str, module: Module, tensor: str) -> Tensor:
    """The parameter or buffer of that name. Raises ValueError where there is none."""
    found = getattr(module, tensor, None)
    if not isinstance(found, Tensor):
        raise ArgumentError(f"{name}: {type(module).__name__} has no parameter or buffer with name '{tensor}'; name one that it has")
    return found


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    off = (q.mH @ q - eye(k, dtype=q.dtype, device=q.device)).abs()  # a matrix loaded from a file is orthonormal to rounding alone
    return off.numel() == 0 or float(off.max()) <= 10.0 * n * float(np.finfo(q._array.dtype).eps)


def _orthogonalise(a: Tensor) -> Tensor:
    """The Q of a = Q R with a positive diagonal of R; a is tall."""
    compact, tau = a.geqrf()
    q = householder_product(compact, tau)
    # LAPACK leaves the signs of R open; with a positive diagonal Q is unique, and as PyTorch's
    return q * compact.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)  # type: ignore[no-any-return]


class _Orthogonal(Module):
    """Any matrix to one of orthonormal columns (rows, where it is wide): the matrix exponential or the Cayley map of its skew part, or a product of
    Householder reflections; after `base`, an orthogonal matrix, if trivialised (Lezcano Casado 2019)."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ArgumentError(
                "orthogonal: The householder parametrization does not support complex tensors; use 'matrix_exp' or 'cayley'"
            )
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:  # the buffer's presence is the flag: a state_dict without it is of one that has none
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]  # columns can be orthonormal only where they are no more than rows
        x = X.mT if wide else X
        q = self._apply_reflections(x) if self.orthogonal_map == "householder" else self._map_skew(x)
        if "base" in self._buffers:
            assert self.base is not None
            q = self.base @ q
        return q.mT if wide else q

    def _map_skew(self, x: Tensor) -> Tensor:
        n, k = x.shape[-2:]
        x = F.pad(x.tril(), (0, n - k))  # a square one, whose skew part has an exponential; the columns added are cut off again
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = matrix_exp(skew)
        else:
            one = eye(n, dtype=x.dtype, device=x.device)
            # the Cayley map (I - A/2)^-1 (I + A/2): a solve, since an inverse would lose digits
            q = solve(one - skew * 0.5, one + skew * 0.5)
        return q[..., :k]  # type: ignore[no-any-return]

    @staticmethod
    def _apply_reflections(x: Tensor) -> Tensor:
        below = x.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(dim=-2))
        signs = x.detach().diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)  # 1 and -1, which are not learned
        return householder_product(below, tau) * signs  # type: ignore[no-any-return]

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ShapeError(f"orthogonal: Expected a matrix or batch of matrices of shape {tuple(self.shape)}, not {tuple(Q.shape)}")
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        n, k = q.shape[-2:]
        if "base" not in self._buffers:
            return self._to_reflectors(q, wide)
        if n != k:
            more = randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            self.base = _orthogonalise(ops.cat(q, more, dim=q.ndim - 1))  # completed to a basis: base multiplies the map's square matrix
        else:
            self.base = q.clone() if _is_orthogonal(q) else _orthogonalise(q)
        minus = zeros_like(Q)
        minus.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # of which each map makes the identity, the reflections by their signs
        return minus

    def _to_reflectors(self, q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False; "
                "use use_trivialization=True"
            )
        compact, tau = q.geqrf()
        signs = compact.diagonal(dim1=-2, dim2=-1)
        turned = signs.sign() * (1.0 - 2.0 * (tau == 0).to(signs.dtype))  # LAPACK's 0: no reflection
        signs.copy_(turned)
        return compact.mT if wide else compact


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Module:
    """Let a matrix, or a batch of them, be orthogonal: of orthonormal columns, or rows where it is wide.

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder"; None: the first for square and complex matrices, else the last.
        use_trivialization: multiply by a fixed orthogonal matrix, at first the one that is given, so that the learned part begins at the identity.
    """
    weight = get_weight("orthogonal", module, name)
    if weight.ndim < 2:
        raise ShapeError(
            f"orthogonal: Expected a matrix or batch of matrices, got a tensor of {weight.ndim} dimensions; its shape is {tuple(weight.shape)}"
        )
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ArgumentError(
            f'orthogonal: orthogonal_map has to be one of "matrix_exp", "cayley", "householder", not {orthogonal_map!r}; give one of them'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(
        module, name, made, unsafe=True
    )  # unsafe: it keeps type and shape by itself, and a trial would be a matrix function for nothing


class _WeightNorm(Module):
    """g v / |v|, the norm over all dimensions but `dim`; -1: over all."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        # the quotient first: it is a vector, the product below it a matrix
        return weight_v * (weight_g / norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Let a weight be g v / |v|, the norm over all dimensions but `dim` (None: over all): its size and its direction are learned apart
    (Salimans and Kingma 2016). State dicts of the older nn.utils.weight_norm load, too."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def older_names(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        if f"{prefix}{name}_g" in state_dict and f"{prefix}{name}_v" in state_dict:
            for part, old in enumerate("gv"):
                state_dict[f"{prefix}parametrizations.{name}.original{part}"] = state_dict.pop(f"{prefix}{name}_{old}")

    hooks.add(module, "load_pre", (older_names, False))
    return module


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iterations estimate: in training some more each time."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"spectral_norm: Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ArgumentError(
                f"spectral_norm: Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim).detach()
            u, v = draw_vectors(matrix, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            iterate(matrix, u, v, 15, eps)  # near the singular vectors from the first forward on; PyTorch's number

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:  # a vector's singular value is its length, which needs no iterations
            return F.normalize(weight, dim=0, eps=self.eps)  # type: ignore[no-any-return]
        matrix = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # the next iteration overwrites them, and this one's gradient needs them
        return weight / (u.conj() * (matrix @ v)).sum()

    def right_inverse(self, value: Tensor) -> Tensor:
        return value  # whatever has this quotient does; PyTorch takes the value itself


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Let a weight be divided by its largest singular value (Miyato et al. 2018), estimated by n_power_iterations whenever it is read in training.

    Args:
        dim: the dimension of the outputs, those of the matrix's rows; None: 0, but 1 of a transposed convolution.
    """
    weight = get_weight("spectral_norm", module, name)
    made = _SpectralNorm(weight, n_power_iterations, outputs_dim(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)
