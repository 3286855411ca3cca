"""Functions of single elements, and the operators."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.pointwise import activations, comparing, complex_numbers, elementary, floats, multiples, operators, special  # noqa: F401
