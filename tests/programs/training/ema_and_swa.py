"""Averaged weights: an exponential moving average and stochastic weight averaging with its schedule and renewed batch statistics."""

import copy

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class EMA:
    def __init__(self, model, decay):
        self.module, self.decay = copy.deepcopy(model).eval(), decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for a, b in zip(self.module.state_dict().values(), model.state_dict().values()):
            if a.dtype.is_floating_point:
                a.copy_(a * self.decay + (1.0 - self.decay) * b)
            else:
                a.copy_(b)


rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((64, 4)), dtype=torch.float32)
y = (x[:, :1] * x[:, 1:2]).tanh()
loader = DataLoader(TensorDataset(x, y), batch_size=16)
model = fill(nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16, affine=False), nn.ReLU(), nn.Linear(16, 1)))
ema, averaged = EMA(model, 0.9), AveragedModel(model)
fast = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
swa_scheduler = SWALR(optimizer, anneal_strategy="linear", anneal_epochs=2, swa_lr=0.05)
for epoch in range(8):
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        loss.backward()
        optimizer.step()
        ema.update(model)
        fast.update_parameters(model)
    if epoch >= 4:
        averaged.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(f"{epoch} {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.4f}")
update_bn(loader, averaged)
with torch.no_grad():
    for name, m in (("model", model.eval()), ("ema", ema.module), ("swa", averaged.eval()), ("fast", fast.eval())):
        print(name, f"{nn.functional.mse_loss(m(x), y).item():.4f}")
print(averaged.n_averaged.item(), list(averaged.state_dict())[:3])
