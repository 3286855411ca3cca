"""Optimizers of one's own: a Lion and a SAM written by subclassing, Lookahead around another, gradients centralised by a step hook."""

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class Lion(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                b1, b2 = group["betas"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                update = state["exp_avg"].clone().mul_(b1).add(p.grad, alpha=1 - b1).sign_()
                p.add_(update, alpha=-group["lr"])
                state["exp_avg"].mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss


class SAM(Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)

    @torch.no_grad()
    def first(self):
        norm = torch.norm(torch.stack([p.grad.norm(p=2) for g in self.param_groups for p in g["params"]]), p=2)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        with torch.enable_grad():
            closure()
        self.first()
        with torch.enable_grad():
            loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old_p"]
        self.base.step()
        self.zero_grad()
        return loss


rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((32, 4)), dtype=torch.float32)
y = torch.tanh(x[:, :1] - x[:, 1:2])
for name in ("lion", "sam", "lookahead"):
    model = fill(nn.Sequential(nn.Linear(4, 8), nn.LogSigmoid(), nn.Linear(8, 1)))
    make = {"lion": lambda p: Lion(p, 5e-3, weight_decay=0.01), "sam": lambda p: SAM(p, torch.optim.SGD, lr=0.1, momentum=0.9)}
    optimizer = make.get(name, lambda p: torch.optim.Adam(p, lr=1e-2))(model.parameters())

    def centralise(opt, args, kwargs):
        for g in opt.param_groups:
            for p in g["params"]:
                if p.grad is not None and p.dim() > 1:
                    p.grad.sub_(p.grad.mean(dim=1, keepdim=True))

    if name == "lookahead":
        handle = optimizer.register_step_pre_hook(centralise)
        slow = [p.detach().clone() for p in model.parameters()]
    for step in range(12):

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.l1_loss(model(x), y)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        if name == "lookahead" and step % 5 == 4:
            with torch.no_grad():
                for s, p in zip(slow, model.parameters()):
                    s.lerp_(p, 0.5)
                    p.copy_(s)
    print(name, f"{loss.item():.4f}", type(optimizer).__name__, len(optimizer.state))
