"""torchdiffeq: a spiral by several solvers, the adjoint's gradient, an event, and a few steps of fitting a neural ODE."""

import numpy as np
import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
start, times = torch.tensor([[2.0, 0.0]]), torch.linspace(0.0, 2.0, 60)


class Spiral(nn.Module):
    """y' = y^3 A."""

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.mm(y**3, matrix)


with torch.no_grad():
    truth = odeint(Spiral(), start, times, method="dopri5")
    for method in ("dopri8", "bosh3", "rk4", "midpoint"):
        found = odeint(Spiral(), start, times, method=method)
        print(method, *[round(float(v), 4) for v in found[-1, 0]], "error below 0.05", bool((found - truth).abs().max() < 0.05))


class Learned(nn.Module):
    """A network in place of the spiral."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        rng = np.random.default_rng(0)
        with torch.no_grad():
            for p in self.net.parameters():
                p.copy_(torch.tensor(0.3 * rng.standard_normal(tuple(p.shape))))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y**3)


for solve in (odeint, odeint_adjoint):
    model = Learned()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = (solve(model, start, times[:6], method="rk4") - truth[:6]).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(solve.__name__, *[round(v, 4) for v in losses])

fall = lambda t, y: torch.stack([y[1], torch.tensor(-9.8)])  # noqa: E731
at, state = odeint_event(fall, torch.tensor([10.0, 0.0]), torch.tensor(0.0), event_fn=lambda t, y: y[0], atol=1e-6, rtol=1e-6)
print("it lands at", round(float(at), 4), "with", round(float(state[-1][1]), 3))
