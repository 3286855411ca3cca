"""Products of vectors and matrices: matmul and its kin, sums of products, einsum, vector products."""

from tritensor.tensor.functions.linear import einsum as einsum
from tritensor.tensor.functions.linear import products as products
from tritensor.tensor.functions.linear import sums_of_products as sums_of_products
from tritensor.tensor.functions.linear import vectors as vectors
