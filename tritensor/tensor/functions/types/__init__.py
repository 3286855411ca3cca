"""Element types: their limits, how they promote, tensors made and named by type."""

from tritensor.tensor.functions.types import conversion as conversion
from tritensor.tensor.functions.types import limits as limits
from tritensor.tensor.functions.types import promotion as promotion
from tritensor.tensor.functions.types import typed as typed
