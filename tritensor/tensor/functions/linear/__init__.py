"""Products of vectors and matrices, and linear algebra."""

from tritensor.tensor.functions.linear import products as products
