"""Elements picked and put by position."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.indexing import masking, parts, picking, scattering, segments, slices  # noqa: F401
