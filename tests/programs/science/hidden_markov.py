"""A hidden Markov model trained by gradient on its forward algorithm, its most probable path, and a Kalman filter."""

import numpy as np
import torch
from torch import nn


class HMM(nn.Module):
    def __init__(self, states, symbols):
        super().__init__()
        rng = np.random.default_rng(1)
        self.start = nn.Parameter(torch.zeros(states))
        self.move = nn.Parameter(torch.tensor(0.5 * rng.standard_normal((states, states)), dtype=torch.float32))
        self.emit = nn.Parameter(torch.tensor(0.5 * rng.standard_normal((states, symbols)), dtype=torch.float32))

    def forward(self, x):
        emit, move = self.emit.log_softmax(-1), self.move.log_softmax(-1)
        alpha = self.start.log_softmax(-1) + emit[:, x[:, 0]].T
        for t in range(1, x.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + move, dim=1) + emit[:, x[:, t]].T
        return alpha.logsumexp(-1)

    @torch.no_grad()
    def viterbi(self, x):
        emit, move = self.emit.log_softmax(-1), self.move.log_softmax(-1)
        best, back = self.start.log_softmax(-1) + emit[:, x[0]], []
        for symbol in x[1:]:
            best, index = torch.max(best.unsqueeze(1) + move, dim=0)
            best = best + emit[:, symbol]
            back.append(index)
        path = [best.argmax()]
        for index in reversed(back):
            path.append(index[path[-1]])
        return torch.stack(path).flip(0)


rng = np.random.default_rng(0)
hidden = (np.arange(30) // 5 + rng.integers(0, 2, (12, 1))) % 2
x = torch.tensor(np.where(rng.uniform(size=(12, 30)) < 0.9, hidden, 1 - hidden))
model = HMM(2, 2)
optimizer = torch.optim.Adadelta(model.parameters(), lr=5.0)
for step in range(25):
    loss = -model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 8 == 0:
        print(f"{step} {loss.item():.4f}")
path = model.viterbi(x[0])
print(path.shape, path.dtype, int(path.unique().numel()) <= 2)

F, H = torch.tensor([[1.0, 1.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
Q, R = 0.01 * torch.eye(2), torch.tensor([[0.5]])
m, P = torch.zeros(2, 1), torch.eye(2) * 10
for z in torch.tensor([1.1, 1.9, 3.2, 3.9, 5.1]):
    m, P = F @ m, F @ P @ F.mT + Q
    S = H @ P @ H.T + R
    K = P @ H.T @ torch.inverse(S)
    m, P = m + K @ (z - H @ m), (torch.eye(2) - K @ H) @ P
print(f"{m[0].item():.3f} {m[1].item():.3f} {torch.trace(P).item():.3f}")
