"""Linear algebra above products: systems, factorizations, spectra, determinants and powers, norms; tritensor.linalg and PyTorch's older names."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.factorizations import (  # noqa: F401
    cholesky,
    iterated,
    least_squares,
    lu,
    norms,
    older_names,
    orthogonal,
    powers,
    solving,
    spectra,
)
