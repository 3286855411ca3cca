"""Kullback-Leibler divergences of pairs of distributions. PyTorch's `torch.distributions.kl`."""

from tritensor.distributions.kl import crossed as _crossed  # noqa: F401  registers its formulas, as does the next one
from tritensor.distributions.kl import same_family as _same_family  # noqa: F401
from tritensor.distributions.kl.registry import _KL_REGISTRY as _KL_REGISTRY
from tritensor.distributions.kl.registry import kl_divergence as kl_divergence
from tritensor.distributions.kl.registry import register_kl as register_kl

__all__ = ["kl_divergence", "register_kl"]
