"""A third-order polynomial fitted to sin(x): by hand, by autograd, and by nn.Sequential with an optimizer."""

import math

import torch

dtype = torch.float
device = torch.device("cpu")
x = torch.linspace(-math.pi, math.pi, 2000, device=device, dtype=dtype)
y = torch.sin(x)

a, b, c, d = (torch.tensor(v, device=device, dtype=dtype) for v in (0.1, -0.2, 0.3, -0.4))
learning_rate = 1e-6
for t in range(200):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum().item()
    if t % 100 == 99:
        print(t, f"{loss:.3f}")
    grad_y_pred = 2.0 * (y_pred - y)
    a -= learning_rate * grad_y_pred.sum()
    b -= learning_rate * (grad_y_pred * x).sum()
    c -= learning_rate * (grad_y_pred * x**2).sum()
    d -= learning_rate * (grad_y_pred * x**3).sum()
print(f"Result: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")

weights = [torch.full((), v, requires_grad=True) for v in (0.1, -0.2, 0.3, -0.4)]
for t in range(200):
    y_pred = weights[0] + weights[1] * x + weights[2] * x**2 + weights[3] * x**3
    loss = (y_pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for w in weights:
            w -= learning_rate * w.grad
            w.grad = None
print("Result:", [round(w.item(), 4) for w in weights])

p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
torch.nn.init.constant_(model[0].weight, 0.05)
torch.nn.init.zeros_(model[0].bias)
loss_fn = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for t in range(100):
    loss = loss_fn(model(xx), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.2f}", xx.shape[0], model[0].weight.dtype is torch.float32)
