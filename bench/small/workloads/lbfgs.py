"""L-BFGS with strong Wolfe line searches on Rosenbrock's function, from its usual beginning."""

from __future__ import annotations

from collections.abc import Callable

import torch


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def build() -> Callable[[], float]:
    def step() -> float:
        x = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([x], lr=1.0, max_iter=20, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(x)
            loss.backward()
            return loss

        optimizer.step(closure)
        return rosenbrock(x).item()

    return step
