"""xitorch: roots, minima, equations and eigenvalues of linear operators, integrals and interpolation, each with its gradient."""

import numpy as np
import torch
from xitorch import LinearOperator
from xitorch.integrate import quad, solve_ivp
from xitorch.interpolate import Interp1D
from xitorch.linalg import lsymeig, solve
from xitorch.optimize import minimize, rootfinder

torch.manual_seed(0)
rng = np.random.default_rng(0)


def tensor(*shape: int) -> torch.Tensor:
    """Numbers drawn by numpy."""
    return torch.tensor(rng.standard_normal(shape)).requires_grad_()


A, y0 = tensor(2, 2), torch.zeros(2, 1, dtype=torch.float64)
root = rootfinder(lambda y, A: torch.tanh(A @ y + 0.1) + y / 2.0, y0, params=(A,))
(gradient,) = torch.autograd.grad(root.sum(), A)
print("root", round(float(root.sum()), 5), "gradient", round(float(gradient.norm()), 5))

b = tensor(3)
least = minimize(
    lambda y, b: ((y - b) ** 2).sum() + (y**4).sum() / 4,
    torch.zeros(3, dtype=torch.float64),
    params=(b,),
    method="gd",
    step=0.1,
    maxiter=500,
)
(gradient,) = torch.autograd.grad(least.sum(), b)
print("least", round(float(least.sum()), 4), "gradient", round(float(gradient.norm()), 4))

M = tensor(4, 4)
operator = LinearOperator.m(M @ M.T + 3 * torch.eye(4, dtype=torch.float64), is_hermitian=True)
x = solve(operator, torch.ones(4, 2, dtype=torch.float64), method="cg")
(gradient,) = torch.autograd.grad(x.sum(), M)
print("solution", round(float(x.sum()), 4), "gradient", round(float(gradient.norm()), 4))
values, vectors = lsymeig(LinearOperator.m(M @ M.T, is_hermitian=True), neig=2)
(gradient,) = torch.autograd.grad(values.sum(), M)
print("eigenvalues", *[round(float(v), 4) for v in values], "gradient", round(float(gradient.norm()), 4))

a = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
ends = (torch.zeros(1, dtype=torch.float64), torch.full((1,), 2.0, dtype=torch.float64))
area = quad(lambda t, a: torch.exp(-a * t**2), *ends, params=(a,))
print("integral", round(float(area), 5), round(float(torch.autograd.grad(area, a)[0]), 5))
ts = torch.linspace(0, 1, 5, dtype=torch.float64)
path = solve_ivp(lambda t, y, a: -a * y, ts, torch.ones(1, dtype=torch.float64), params=(a,), method="rk45")
print("decay", *[round(float(v), 5) for v in path[:, 0]], round(float(torch.autograd.grad(path[-1].sum(), a)[0]), 5))
knots = torch.linspace(0, 3, 8, dtype=torch.float64)
heights = torch.sin(knots).requires_grad_()
between = Interp1D(knots, heights, method="cspline")(torch.tensor([0.2, 1.3, 2.9], dtype=torch.float64))
print("between", *[round(float(v), 4) for v in between], round(float(torch.autograd.grad(between.sum(), heights)[0].norm()), 4))
