"""Linear algebra above products: systems, factorizations, spectra, determinants and powers, norms; tritensor.linalg and PyTorch's older names."""

from tritensor.tensor.functions.factorizations import cholesky as cholesky
from tritensor.tensor.functions.factorizations import determinants as determinants
from tritensor.tensor.functions.factorizations import iterated as iterated
from tritensor.tensor.functions.factorizations import least_squares as least_squares
from tritensor.tensor.functions.factorizations import lu as lu
from tritensor.tensor.functions.factorizations import norms as norms
from tritensor.tensor.functions.factorizations import older_names as older_names
from tritensor.tensor.functions.factorizations import orthogonal as orthogonal
from tritensor.tensor.functions.factorizations import powers as powers
from tritensor.tensor.functions.factorizations import removed as removed
from tritensor.tensor.functions.factorizations import solving as solving
from tritensor.tensor.functions.factorizations import spectra as spectra
from tritensor.tensor.functions.factorizations import symmetric as symmetric
