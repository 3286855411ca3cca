"""Transforms: functions with inverses and Jacobians, of which distributions are made. PyTorch's `torch.distributions.transforms`."""

from tritensor.distributions.transforms.base import ComposeTransform as ComposeTransform
from tritensor.distributions.transforms.base import Transform as Transform
from tritensor.distributions.transforms.base import _InverseTransform as _InverseTransform
from tritensor.distributions.transforms.base import identity_transform as identity_transform
from tritensor.distributions.transforms.events import CorrCholeskyTransform as CorrCholeskyTransform
from tritensor.distributions.transforms.events import IndependentTransform as IndependentTransform
from tritensor.distributions.transforms.events import ReshapeTransform as ReshapeTransform
from tritensor.distributions.transforms.events import SoftmaxTransform as SoftmaxTransform
from tritensor.distributions.transforms.events import StickBreakingTransform as StickBreakingTransform
from tritensor.distributions.transforms.joined import CatTransform as CatTransform
from tritensor.distributions.transforms.joined import StackTransform as StackTransform
from tritensor.distributions.transforms.matrices import LowerCholeskyTransform as LowerCholeskyTransform
from tritensor.distributions.transforms.matrices import PositiveDefiniteTransform as PositiveDefiniteTransform
from tritensor.distributions.transforms.pointwise import AbsTransform as AbsTransform
from tritensor.distributions.transforms.pointwise import AffineTransform as AffineTransform
from tritensor.distributions.transforms.pointwise import CumulativeDistributionTransform as CumulativeDistributionTransform
from tritensor.distributions.transforms.pointwise import ExpTransform as ExpTransform
from tritensor.distributions.transforms.pointwise import PowerTransform as PowerTransform
from tritensor.distributions.transforms.pointwise import SigmoidTransform as SigmoidTransform
from tritensor.distributions.transforms.pointwise import SoftplusTransform as SoftplusTransform
from tritensor.distributions.transforms.pointwise import TanhTransform as TanhTransform

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
    "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform",
    "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
