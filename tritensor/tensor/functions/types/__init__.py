"""Element types: their limits, how they promote, tensors made and named by type; what kind a tensor is, and its memory."""

from tritensor.tensor.functions.types import apply as apply
from tritensor.tensor.functions.types import conversion as conversion
from tritensor.tensor.functions.types import legacy_types as legacy_types
from tritensor.tensor.functions.types import limits as limits
from tritensor.tensor.functions.types import predicates as predicates
from tritensor.tensor.functions.types import promotion as promotion
from tritensor.tensor.functions.types import storages as storages
