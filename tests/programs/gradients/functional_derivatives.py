"""autograd.functional and grad of grad: Jacobians, Hessians, products; curvature, influence, implicit differentiation."""

import numpy as np
import torch
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

torch.set_printoptions(precision=4)
rng = np.random.default_rng(0)
A = torch.tensor(rng.standard_normal((4, 4)))
A = A @ A.T + torch.eye(4, dtype=torch.float64)
b = torch.tensor(rng.standard_normal(4))
f = lambda v: 0.5 * v @ A @ v + (v**4).sum() / 4
x = torch.tensor(rng.standard_normal(4))
H = hessian(f, x)
print(torch.allclose(H, A + 3 * torch.diag(x**2)), jacobian(lambda v: v.exp() * b, x).diagonal())
print(torch.allclose(hvp(f, x, b)[1], H @ b), torch.allclose(vhp(f, x, b)[1], b @ H), vjp(torch.sin, x, b)[1], jvp(torch.cos, x, b)[1])


def conjugate_gradient(product, rhs, iterations=20):
    solution, r = torch.zeros_like(rhs), rhs.clone()
    p, old = r.clone(), r @ r
    for _ in range(iterations):
        Ap = product(p)
        alpha = old / (p @ Ap)
        solution, r = solution + alpha * p, r - alpha * Ap
        new = r @ r
        if new < 1e-20:
            break
        p, old = r + (new / old) * p, new
    return solution


def product(v):
    w = x.clone().requires_grad_(True)
    (g,) = torch.autograd.grad(f(w), w, create_graph=True)
    return torch.autograd.grad(g @ v, w)[0]


print("solves with H:", torch.allclose(conjugate_gradient(product, b), torch.linalg.solve(H, b), atol=1e-8))
top = torch.ones(4, dtype=torch.float64)
for _ in range(60):
    top = product(top)
    top = top / top.norm()
print("largest eigenvalue:", torch.allclose(top @ product(top), torch.linalg.eigvalsh(H)[-1], rtol=1e-4))

theta = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
root = torch.tensor(1.0, dtype=torch.float64)
with torch.no_grad():
    for _ in range(30):
        root = root - (root**3 + root - theta) / (3 * root**2 + 1)
implicit = 1 / (3 * root**2 + 1)
attached = root - (root**3 + root - theta) / (3 * root**2 + 1).detach()
print("implicit derivative:", torch.allclose(torch.autograd.grad(attached, theta)[0], implicit), f"{root.item():.4f}")
y = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
derivative, found = torch.tanh(y), []
for order in range(5):
    found.append(round(derivative.item(), 4))
    (derivative,) = torch.autograd.grad(derivative, y, create_graph=True)
print(found)
t = torch.linspace(0, 3, 4, requires_grad=True)
(d,) = torch.autograd.grad(t.sin(), t, torch.eye(4), is_grads_batched=True)
print(d.diagonal())
with torch.autograd.detect_anomaly():
    try:
        z = torch.tensor([-1.0], requires_grad=True)
        torch.sqrt(z).sum().backward()
    except RuntimeError as error:
        print(str(error).split(".")[0])
