"""A script with types, checked by mypy against the stubs (`make lint`); it is never run."""

from __future__ import annotations

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import Tensor, nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(3, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = F.gelu(self.first(x), approximate="tanh")
        return h.view(-1, 4).transpose(0, 1).contiguous()


def penalty(x: Tensor, weight: float = 0.5) -> Tensor:
    squares = (x**2).sum(dim=1, keepdim=True)
    total = tt.sqrt(squares + 1e-6).mean() * weight
    scaled: Tensor = -total + x.abs().amax() / 2
    return scaled.clamp(min=0.0)


def misspelled(x: Tensor) -> None:
    x.softmaxx(0)  # type: ignore[attr-defined]
    tt.concatt([x])  # type: ignore[attr-defined]
    F.relu(x, inplaced=True)  # type: ignore[call-arg]
    tt.zeros(2, 3, dtype=tt.float32, divice="cuda")  # type: ignore[call-arg]
    x.sum(dim=1, keepdim="yes")  # type: ignore[arg-type]


x: Tensor = tt.randn(4, 3, dtype=tt.float64, requires_grad=True)
y = tt.cat([x, tt.zeros_like(x)], dim=0)[1:, ..., None].squeeze(-1)
with tt.no_grad():
    shape: tuple[int, ...] = y.shape
    kind: tt.dtype = y.dtype
    at: tt.device = tt.device("cpu")
loss = penalty(Model(4)(y.float()))
loss.backward()
number: float = loss.item()
