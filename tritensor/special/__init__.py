"""tritensor.special: the functions of torch.special, the same objects as in `tritensor` where they stand there as well."""

from tritensor.tensor.public_api.publish import namespaces as _namespaces
from tritensor.tensor.public_api.publish import public as _public

_SHARED = ("erf", "erfc", "exp2", "expit", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "round", "softmax", "xlogy")
globals().update(_namespaces["special"], **{name: _public[name] for name in _SHARED})

__all__ = sorted([*_namespaces["special"], *_SHARED])
