"""Products of vectors and matrices: matmul and its kin, sums of products, einsum, vector products."""

# Imported so that they register: each publishes its functions as it is loaded.
from tritensor.tensor.functions.linear import einsum, products, sums_of_products, vectors  # noqa: F401
