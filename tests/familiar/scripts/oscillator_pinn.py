"""A physics-informed network for a damped oscillator: first and second derivatives of the network by its input, in the loss."""

import numpy as np
import torch
import torch.nn as nn

rng = np.random.RandomState(11)
torch.set_default_dtype(torch.double)


class FCN(nn.Module):
    """A fully connected network."""

    def __init__(self, n_input, n_output, n_hidden, n_layers):
        super().__init__()
        activation = nn.Tanh
        self.fcs = nn.Sequential(*[nn.Linear(n_input, n_hidden), activation()])
        self.fch = nn.Sequential(*[nn.Sequential(*[nn.Linear(n_hidden, n_hidden), activation()]) for _ in range(n_layers - 1)])
        self.fce = nn.Linear(n_hidden, n_output)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(x)))


pinn = FCN(1, 1, 12, 3)
for p in pinn.parameters():
    p.data.copy_(torch.tensor(0.5 * rng.randn(*p.shape)))
t_boundary = torch.tensor(0.0).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 1, 30).view(-1, 1).requires_grad_(True)
d, w0 = 2, 5
mu, k = 2 * d, w0**2
optimiser = torch.optim.Adam(pinn.parameters(), lr=1e-2)
for i in range(31):
    optimiser.zero_grad()
    u = pinn(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2
    u = pinn(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + mu * dudt + k * u) ** 2)
    loss = loss1 + 1e-1 * loss2 + 1e-4 * loss3
    loss.backward()
    optimiser.step()
    if i % 10 == 0:
        print(i, f"{loss.item():.6f} {loss1.item():.6f} {loss2.item():.6f} {loss3.item():.4f}")
torch.set_default_dtype(torch.float)
