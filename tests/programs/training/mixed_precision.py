"""Mixed precision on the CPU with autocast, and the loop with a GradScaler that the same script uses on a GPU; a skipped step."""

import numpy as np
import torch
from torch import nn


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


device, use_cuda = "cpu", False
model = fill(nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 3)))
nn.init.ones_(model[1].weight)
nn.init.zeros_(model[1].bias)
rng = np.random.default_rng(0)
x, y = torch.tensor(rng.standard_normal((32, 8)), dtype=torch.float32), torch.tensor(rng.integers(0, 3, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler(device, enabled=use_cuda)
for step in range(8):
    with torch.autocast(device_type=device, dtype=torch.bfloat16):
        out = model(x)
        if step == 0:
            print(out.dtype, model[0](x).dtype, (out.float() + 1).dtype, torch.mm(x, x.t()).dtype)
            with torch.autocast(device_type=device, enabled=False):
                print(model(x).dtype)
        loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 3 == 0:
        print(f"{step} {loss.item():.1f} {loss.dtype} {model[0].weight.grad.dtype}")
print(torch.is_autocast_enabled(), scaler.is_enabled(), scaler.get_scale())


@torch.autocast("cpu", dtype=torch.bfloat16)
def infer(v):
    return model(v)


print(infer(x).dtype)
real = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
w = torch.tensor([1.0], requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for g in (1.0, float("inf"), 1.0, 1.0):
    opt.zero_grad()
    real.scale((w * g).sum()).backward()
    real.step(opt)
    real.update()
    print(f"{w.item():.3f} {real.get_scale()}")
print(sorted(real.state_dict()))
