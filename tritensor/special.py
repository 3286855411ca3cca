"""tritensor.special: the functions of torch.special, the same objects that stand in `tritensor` where they stand there as well."""

from __future__ import annotations

from tritensor.tensor.functions.pointwise.special import names as _names
from tritensor.tensor.publishing.publish import public as _public

globals().update({name: f for name, f in _names.items() if name != "lgamma"})
globals().update(
    {
        name: _public[name]
        for name in ("erf", "erfc", "exp2", "expit", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "round", "softmax", "xlogy")
    }
)

__all__ = sorted(n for n in globals() if not n.startswith("_") and n != "annotations")
