"""tritensor.special: the functions of torch.special, of the same meaning as in `tritensor` where they stand there as well."""

from tritensor.tensor.public_api.publish import namespaces as _namespaces
from tritensor.tensor.public_api.publish import public as _public
from tritensor.tensor.public_api.publish import twin as _twin

_SHARED = ("erf", "erfc", "exp2", "expit", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "round", "softmax", "xlogy")
globals().update(_namespaces["special"], **{name: _twin(_public[name], name, "tritensor.special") for name in _SHARED})

__all__ = sorted([*_namespaces["special"], *_SHARED])
