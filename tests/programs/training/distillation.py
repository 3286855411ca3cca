"""Knowledge distillation with soft targets, and FitNets hints taken by forward hooks."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


def conv_bn(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.InstanceNorm2d(cout, affine=True), nn.ReLU6(inplace=True))


teacher = fill(nn.Sequential(conv_bn(1, 16), conv_bn(16, 16), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(64, 4)))
student = fill(nn.Sequential(conv_bn(1, 4), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Dropout(0.0), nn.Linear(16, 4)), 1)
regressor = fill(nn.Conv2d(4, 16, 1), 2)
for m in [*teacher.modules(), *student.modules()]:
    if isinstance(m, nn.InstanceNorm2d):
        nn.init.ones_(m.weight)
        nn.init.zeros_(m.bias)
teacher.eval()
hints = {}
teacher[1].register_forward_hook(lambda m, i, o: hints.__setitem__("teacher", o))
student[0].register_forward_hook(lambda m, i, o: hints.__setitem__("student", o))
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((24, 1, 8, 8)), dtype=torch.float32)
with torch.no_grad():
    soft = teacher(x)
hard = soft.argmax(dim=1)
optimizer = torch.optim.Adam([*student.parameters(), *regressor.parameters()], lr=1e-2)
temperature, alpha = 4.0, 0.7
for step in range(12):
    with torch.no_grad():
        logits = teacher(x)
    out = student(x)
    kd = F.kl_div(F.log_softmax(out / temperature, dim=1), F.softmax(logits / temperature, dim=1), reduction="batchmean") * temperature**2
    ce = F.cross_entropy(out, hard)
    hint = F.mse_loss(regressor(hints["student"]), hints["teacher"])
    loss = alpha * kd + (1 - alpha) * ce + 0.1 * hint
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(f"{step} kd {kd.item():.4f} ce {ce.item():.4f} hint {hint.item():.4f}")
agreement = (student(x).argmax(1) == hard).float().mean().item()
print(f"agreement {agreement:.1f}", sum(p.numel() for p in teacher.parameters()), sum(p.numel() for p in student.parameters()))
