"""Element types: their limits, how they promote, tensors made and named by type; what kind a tensor is, and its memory."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.types import apply, legacy_types, limits, predicates, promotion, storages  # noqa: F401
