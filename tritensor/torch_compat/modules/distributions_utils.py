"""torch.distributions.utils: what distributions do to their parameters, under PyTorch's path."""

from tritensor.distributions.lazy import lazy_property as lazy_property
from tritensor.distributions.parameters import broadcast_all as broadcast_all
from tritensor.distributions.parameters import clamp_probs as clamp_probs
from tritensor.distributions.parameters import draw_standard_normal as _standard_normal  # noqa: F401  names that scripts import although they are hidden
from tritensor.distributions.parameters import logits_to_probs as logits_to_probs
from tritensor.distributions.parameters import probs_to_logits as probs_to_logits
from tritensor.distributions.parameters import sum_rightmost as _sum_rightmost  # noqa: F401
from tritensor.distributions.parameters import tril_matrix_to_vec as tril_matrix_to_vec
from tritensor.distributions.parameters import vec_to_tril_matrix as vec_to_tril_matrix
