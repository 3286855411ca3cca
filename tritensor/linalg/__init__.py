"""tritensor.linalg: linear algebra, torch.linalg in full. Factorizations run on the CPU, products on either device."""

from tritensor.ground.errors import LinAlgError as LinAlgError
from tritensor.tensor.public_api.publish import namespaces as _namespaces

globals().update(_namespaces["linalg"])

__all__ = sorted(["LinAlgError", *_namespaces["linalg"]])
