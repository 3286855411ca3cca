"""Functions of tensors that distributions are made of, by their public names."""

from tritensor.tensor.functions.creation.constructors import as_tensor as as_tensor
from tritensor.tensor.functions.creation.constructors import empty as empty
from tritensor.tensor.functions.creation.constructors import eye as eye
from tritensor.tensor.functions.creation.constructors import full as full
from tritensor.tensor.functions.creation.constructors import full_like as full_like
from tritensor.tensor.functions.creation.constructors import ones as ones
from tritensor.tensor.functions.creation.constructors import ones_like as ones_like
from tritensor.tensor.functions.creation.constructors import tensor as tensor
from tritensor.tensor.functions.creation.constructors import zeros as zeros
from tritensor.tensor.functions.creation.constructors import zeros_like as zeros_like
from tritensor.tensor.functions.creation.distributions import binomial as binomial
from tritensor.tensor.functions.creation.distributions import draw_cauchy as draw_cauchy
from tritensor.tensor.functions.creation.distributions import poisson as poisson
from tritensor.tensor.functions.creation.gammas import sample_dirichlet as sample_dirichlet
from tritensor.tensor.functions.creation.gammas import standard_gamma as standard_gamma
from tritensor.tensor.functions.creation.multinomial import multinomial as multinomial
from tritensor.tensor.functions.creation.random import bernoulli as bernoulli
from tritensor.tensor.functions.creation.random import normal as normal
from tritensor.tensor.functions.creation.random import rand as rand
from tritensor.tensor.functions.creation.random import randn as randn
from tritensor.tensor.functions.creation.sequences import arange as arange
from tritensor.tensor.functions.creation.sequences import tril_indices as tril_indices
from tritensor.tensor.functions.factorizations.cholesky import cholesky as cholesky
from tritensor.tensor.functions.factorizations.cholesky import cholesky_ex as cholesky_ex
from tritensor.tensor.functions.factorizations.cholesky import cholesky_inverse as cholesky_inverse
from tritensor.tensor.functions.factorizations.solving import solve_triangular as solve_triangular
from tritensor.tensor.functions.factorizations.spectra import eigvalsh as eigvalsh
from tritensor.tensor.functions.linear.products import matmul as matmul
from tritensor.tensor.functions.pointwise.comparing import isclose as isclose
from tritensor.tensor.functions.pointwise.elementary import logaddexp as logaddexp
from tritensor.tensor.functions.pointwise.elementary import maximum as maximum
from tritensor.tensor.functions.pointwise.elementary import minimum as minimum
from tritensor.tensor.functions.pointwise.elementary import where as where
from tritensor.tensor.functions.pointwise.elementary import xlogy as xlogy
from tritensor.tensor.functions.pointwise.special import igamma as igamma
from tritensor.tensor.functions.pointwise.special import mvlgamma as mvlgamma
from tritensor.tensor.functions.shaping.joining import cat as cat
from tritensor.tensor.functions.shaping.joining import stack as stack
from tritensor.tensor.functions.shaping.reshaping import broadcast_shapes as broadcast_shapes
from tritensor.tensor.functions.shaping.reshaping import broadcast_tensors as broadcast_tensors
from tritensor.tensor.functions.shaping.reshaping import diag_embed as diag_embed
from tritensor.tensor.public_api.publish import namespaces as _namespaces

i0e, i1e, ndtri, xlog1py = (_namespaces["special"][name] for name in ("i0e", "i1e", "ndtri", "xlog1py"))
