"""LAMB, SAM and Muon as published beside the library's rarer optimisers: lists of tensors, chained schedules, states read back, a step in the hook of a gradient."""

import math
import torch
import numpy as np
import itertools
import copy
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer, SGD, lr_scheduler as S
from torch.utils.data import Sampler, DataLoader, Dataset


class Lamb(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0, adam=False):
        if not 0.0 <= lr:
            raise ValueError("Invalid learning rate: {}".format(lr))
        super(Lamb, self).__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.adam = adam

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                if grad.is_sparse:
                    raise RuntimeError("Lamb does not support sparse gradients")
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p.data), torch.zeros_like(p.data)
                m, v = state["exp_avg"], state["exp_avg_sq"]
                b1, b2 = group["betas"]
                state["step"] += 1
                m.mul_(b1).add_(grad, alpha=1 - b1)
                v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
                wn = p.data.pow(2).sum().sqrt().clamp(0, 10)
                step = m / v.sqrt().add(group["eps"])
                if group["weight_decay"] != 0:
                    step.add_(p.data, alpha=group["weight_decay"])
                sn = step.pow(2).sum().sqrt()
                trust = 1 if wn == 0 or sn == 0 else wn / sn
                state["weight_norm"], state["trust_ratio"] = wn, trust
                p.data.add_(step, alpha=-group["lr"] * (1 if self.adam else float(trust)))
        return loss


class SAM(Optimizer):
    def __init__(self, params, base, rho=0.05, adaptive=False, **kw):
        assert rho >= 0.0, f"Invalid rho, should be non-negative: {rho}"
        super().__init__(params, dict(rho=rho, adaptive=adaptive, **kw))
        self.base_optimizer = base(self.param_groups, **kw)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = torch.norm(
            torch.stack(
                [
                    ((torch.abs(p) if g["adaptive"] else 1.0) * p.grad).norm(p=2)
                    for g in self.param_groups
                    for p in g["params"]
                    if p.grad is not None
                ]
            ),
            p=2,
        )
        for g in self.param_groups:
            scale = g["rho"] / (norm + 1e-12)
            for p in g["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_((torch.pow(p, 2) if g["adaptive"] else 1.0) * p.grad * scale.to(p))
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None:
                    p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()

    def load_state_dict(self, sd):
        super().load_state_dict(sd)
        self.base_optimizer.param_groups = self.param_groups


def newton_schulz(G, steps=5, eps=1e-7):
    assert G.ndim >= 2
    a, b, c = (3.4445, -4.7750, 2.0315)
    X = G / (G.norm() + eps)
    if G.size(-2) > G.size(-1):
        X = X.mT
    for _ in range(steps):
        A = X @ X.mT
        X = a * X + (b * A + c * A @ A) @ X
    return X.mT if G.size(-2) > G.size(-1) else X


class Muon(Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95, nesterov=True):
        super().__init__(params, dict(lr=lr, momentum=momentum, nesterov=nesterov))

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            ps = [p for p in g["params"] if p.grad is not None]
            bufs = [self.state[p].setdefault("momentum_buffer", torch.zeros_like(p)) for p in ps]
            torch._foreach_mul_(bufs, g["momentum"])
            torch._foreach_add_(bufs, [p.grad for p in ps])
            for p, buf in zip(ps, bufs):
                u = p.grad.add(buf, alpha=g["momentum"]) if g["nesterov"] else buf
                p.add_(newton_schulz(u) * max(1, p.size(0) / p.size(1)) ** 0.5 if p.ndim == 2 else u.sign(), alpha=-g["lr"])


class Strided(Sampler[int]):
    def __init__(self, data_source, stride):
        self.n, self.stride = len(data_source), stride

    def __iter__(self):
        return itertools.chain.from_iterable(range(i, self.n, self.stride) for i in range(self.stride))

    def __len__(self):
        return self.n


class DS(Dataset):
    def __init__(self):
        r = np.random.RandomState(0)
        self.x = r.randn(32, 4).astype("f")
        self.y = (self.x[:, :2] ** 2).sum(1, keepdims=True)

    def __len__(self):
        return 32

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def net():
    m = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    r = np.random.RandomState(1)
    for p in m.parameters():
        p.data = torch.from_numpy(r.randn(*p.shape) * 0.4).float()
    return m


loader = DataLoader(DS(), batch_size=16, sampler=Strided(DS(), 4))
print(list(loader.sampler)[:9], len(loader))
mk = {
    "lamb": lambda p: Lamb(p, lr=0.02, weight_decay=0.01),
    "sam": lambda p: SAM(p, SGD, rho=0.05, lr=0.05, momentum=0.9),
    "muon": lambda p: Muon(p),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.05),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01, decoupled_weight_decay=True),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.05),
    "rprop": lambda p: torch.optim.Rprop(p),
}
for name, make in mk.items():
    m = net()
    opt = make(m.parameters())
    sch = (
        S.SequentialLR(opt, [S.LinearLR(opt, 0.5, total_iters=2), S.CosineAnnealingLR(opt, 6, eta_min=1e-3)], milestones=[2])
        if name in ("lamb", "muon")
        else S.ChainedScheduler([S.ExponentialLR(opt, 0.95), S.ConstantLR(opt, 0.8, 2)])
        if name == "nadam"
        else S.CyclicLR(opt, 1e-3, 0.05, step_size_up=3, cycle_momentum=False)
        if name == "asgd"
        else None
    )
    for ep in range(3):
        for x, y in loader:

            def closure():
                opt.zero_grad()
                loss = F.mse_loss(m(x), y)
                loss.backward()
                return loss

            if name == "sam":
                loss = closure()
                opt.step(closure)
            else:
                loss = closure()
                opt.step()
        if sch:
            sch.step()
    print(
        name,
        f"{loss.item():.5f} lr {opt.param_groups[0]['lr']:.5f}",
        sorted(map(str, opt.state[m[0].weight].keys())),
        len(opt.state_dict()["state"]),
    )
    sd = copy.deepcopy(opt.state_dict())
    o2 = make(net().parameters())
    o2.load_state_dict(sd)
    assert o2.state_dict()["param_groups"][0]["lr"] == opt.param_groups[0]["lr"]
m = net()
seen = []
opts = {p: torch.optim.Adam([p], lr=0.01, foreach=False) for p in m.parameters()}


def hook(p):
    opts[p].step()
    opts[p].zero_grad()
    seen.append(tuple(p.shape))


for p in m.parameters():
    p.register_post_accumulate_grad_hook(hook)
for x, y in loader:
    F.mse_loss(m(x), y).backward()
print(len(seen), all(p.grad is None for p in m.parameters()), f"{F.mse_loss(m(x), y).item():.5f}")
try:
    Lamb(net().parameters(), lr=-1)
except ValueError as e:
    print(e)
print(Lamb(net().parameters()), S.StepLR(SGD(net().parameters(), lr=0.1), 2).state_dict()["base_lrs"])
