"""Structured matrices that torch's own functions take: products, solves, determinants, sums and parts of them."""

import numpy as np
import torch
from linear_operator.operators import DiagLinearOperator, KroneckerProductLinearOperator, LowRankRootLinearOperator, ToeplitzLinearOperator

torch.manual_seed(0)
draw = np.random.default_rng(0).standard_normal
root = torch.from_numpy(draw((6, 2))).requires_grad_()
diagonal = torch.from_numpy(np.abs(draw(6)) + 1).requires_grad_()
right = torch.from_numpy(draw((6, 3)))

operator = LowRankRootLinearOperator(root) + DiagLinearOperator(diagonal)
print("class", type(operator).__name__, tuple(operator.shape))
print("product", round(float(torch.matmul(operator, right).sum().detach()), 4))
solution = torch.linalg.solve(operator, right)
print("solve", [round(x, 4) for x in solution.sum(0).tolist()], bool((operator @ solution - right).abs().max() < 1e-8))
print("determinant", round(float(torch.logdet(operator).detach()), 4))
loss = torch.logdet(operator) + (right * solution).sum()
loss.backward()
print("gradients", round(float(root.grad.abs().sum()), 4), round(float(diagonal.grad.sum()), 4))

toeplitz = ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.25]))
matrix = toeplitz.to_dense()
print(
    "sums",
    type(matrix - toeplitz).__name__,
    round(float((matrix - toeplitz).to_dense().abs().sum()), 4),
    round(float(torch.sum(toeplitz)), 4),
)
print("sub", round(float(torch.sub(matrix, toeplitz * 2).to_dense().sum()), 4))
print("diagonal", torch.diagonal(toeplitz, dim1=-2, dim2=-1).tolist(), tuple(toeplitz.mT.shape))
print("cholesky", round(float(torch.linalg.cholesky(toeplitz).to_dense().sum()), 4))
values, vectors = torch.linalg.eigh(toeplitz)
print("eigh", [round(x, 4) for x in values.tolist()], tuple(vectors.shape))
product = KroneckerProductLinearOperator(toeplitz, toeplitz)
print("kronecker", tuple(product.shape), round(float(product.matmul(torch.ones(16, 1)).sum()), 4), round(float(torch.logdet(product)), 4))
