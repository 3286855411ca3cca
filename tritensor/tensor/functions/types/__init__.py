"""Element types: their limits, how they promote, tensors made and named by type; what kind a tensor is, and its memory."""

from tritensor.tensor.functions.types import called as called
from tritensor.tensor.functions.types import conversion as conversion
from tritensor.tensor.functions.types import kinds as kinds
from tritensor.tensor.functions.types import limits as limits
from tritensor.tensor.functions.types import promotion as promotion
from tritensor.tensor.functions.types import storages as storages
from tritensor.tensor.functions.types import typed as typed
