"""tritensor.masked: reductions and their kin over the elements that a mask shows, as in torch.masked (without its MaskedTensor)."""

from tritensor.tensor.public_api.publish import namespaces as _namespaces

globals().update(_namespaces["masked"])

__all__ = sorted(_namespaces["masked"])
