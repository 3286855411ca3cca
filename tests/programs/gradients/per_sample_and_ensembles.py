"""torch.func: per-sample gradients, model ensembling, Jacobians, Hessians, Hessian-vector products, a neural tangent kernel."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap


def fill(model, seed=0):
    """The same weights in every run and library: from numpy's generator."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 3, 1), nn.Linear(4 * 3 * 3, 3)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.conv(x)), 2)
        return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)


rng = np.random.default_rng(0)
model = fill(CNN())
x, y = torch.tensor(rng.standard_normal((5, 1, 8, 8)), dtype=torch.float32), torch.tensor(rng.integers(0, 3, 5))
params = {k: v.detach() for k, v in model.named_parameters()}


def compute_loss(p, sample, target):
    return F.nll_loss(functional_call(model, (p, {}), (sample.unsqueeze(0),)), target.unsqueeze(0))


each = vmap(grad(compute_loss), in_dims=(None, 0, 0))(params, x, y)
loop = [torch.autograd.grad(F.nll_loss(model(x[i : i + 1]), y[i : i + 1]), tuple(model.parameters())) for i in range(5)]
for i, (name, g) in enumerate(each.items()):
    print(name, tuple(g.shape), torch.allclose(g, torch.stack([r[i] for r in loop]), atol=1e-5))
models = [fill(CNN(), seed) for seed in range(3)]
stacked, buffers = stack_module_state(models)
together = vmap(lambda p, b, v: functional_call(models[0], (p, b), (v,)), in_dims=(0, 0, None))(stacked, buffers, x)
print("ensemble:", torch.allclose(together, torch.stack([m(x) for m in models]), atol=1e-5))

f = lambda v: torch.stack([v[0] ** 2 * v[1], v.sin().sum(), v.prod()])
v = torch.tensor([0.5, -1.0, 2.0])
print(torch.allclose(jacrev(f)(v), jacfwd(f)(v), atol=1e-6), [round(t, 3) for t in jacrev(f)(v).flatten().tolist()])
g = lambda v: (v**3).sum() + v[0] * v[1]
print([round(t, 3) for t in hessian(g)(v).flatten().tolist()])
value, tangent = jvp(grad(g), (v,), (torch.ones(3),))
print([round(t, 3) for t in tangent.tolist()], torch.allclose(tangent, hessian(g)(v) @ torch.ones(3)))
out, pull = vjp(f, v)
print([round(t, 3) for t in pull(torch.ones(3))[0].tolist()])
gradient, (value, extra) = grad_and_value(lambda v: (g(v), v.sum()), has_aux=True)(v)
print(f"{value.item():.3f} {extra.item():.3f}", [round(t, 3) for t in gradient.tolist()])
jacobians = vmap(jacrev(lambda p, s: functional_call(model, p, (s.unsqueeze(0),)).squeeze(0)), (None, 0))(params, x)
flat = torch.cat([j.flatten(2) for j in jacobians.values()], dim=2)
kernel = torch.einsum("nip,mjp->nmij", flat, flat)
print(tuple(kernel.shape), f"{kernel.diagonal(dim1=0, dim2=1).sum().item():.2f}")
print(
    vmap(torch.dot)(torch.arange(6.0).view(3, 2), torch.ones(3, 2)).tolist(),
    vmap(torch.mm, in_dims=(2, None), out_dims=2)(torch.ones(2, 3, 4), torch.ones(3, 2)).shape,
)
