"""Views, reorderings, joining and splitting, moving between devices."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.shaping import combining, copies, joining, reshaping, resizing, strided  # noqa: F401
