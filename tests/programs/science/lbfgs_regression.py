"""Logistic and least-squares regression with L-BFGS and Newton's method beside the closed form."""

import numpy as np
import torch
from torch.autograd.functional import hessian, jacobian
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

torch.set_printoptions(precision=3, sci_mode=False)
rng = np.random.default_rng(0)
X = torch.tensor(rng.standard_normal((40, 3)))
w_true = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
y = X @ w_true + 0.1 * torch.tensor(rng.standard_normal(40))
w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.LBFGS([w], lr=1, max_iter=20, line_search_fn="strong_wolfe")


def closure():
    if torch.is_grad_enabled():
        optimizer.zero_grad()
    loss = mse_loss(X @ w, y) + 0.01 * w.square().sum()
    if loss.requires_grad:
        loss.backward()
    return loss


optimizer.step(closure)
exact = torch.linalg.solve(X.T @ X / 40 + 0.01 * torch.eye(3, dtype=torch.float64), X.T @ y / 40)
print("least squares:", torch.allclose(w, exact, atol=1e-5), w.detach())
state = optimizer.state[optimizer._params[0]]
print(state["n_iter"] > 0, state["func_evals"] > 0)

labels = (y > 0).double()
objective = lambda v: binary_cross_entropy_with_logits(X @ v, labels) + 0.05 * v @ v
v = torch.zeros(3, dtype=torch.float64)
for step in range(5):
    H, g = hessian(objective, v), jacobian(objective, v)
    v = v - torch.linalg.lstsq(H, g.unsqueeze(1)).solution.squeeze(1)
    print(f"newton {step} {objective(v).item():.6f} {g.norm().item():.2e}" if step < 2 else f"newton {step} {objective(v).item():.6f}")
u = torch.zeros(3, dtype=torch.float64, requires_grad=True)
sgd = torch.optim.ASGD([u], lr=0.5)
for _ in range(50):
    sgd.zero_grad()
    objective(u).backward()
    sgd.step()
print("close to newton:", torch.dist(u.detach(), v).item() < 0.05)
