"""KeOps: a sum over a kernel that is never stored, and its gradient; both are compiled to C++ at the first call."""

import numpy as np
import pykeops
import torch
from pykeops.torch import LazyTensor

pykeops.set_verbose(False)
rng = np.random.default_rng(0)
x, y, weights = (torch.tensor(rng.random(shape), dtype=torch.float32) for shape in ((200, 3), (150, 3), (150, 2)))
x.requires_grad_()
squares = ((LazyTensor(x[:, None, :]) - LazyTensor(y[None, :, :])) ** 2).sum(-1)
summed = (-squares / 0.1).exp() @ weights
print("sums", tuple(summed.shape), round(float(summed.sum()), 3))
(gradient,) = torch.autograd.grad((summed**2).sum(), x)
print("gradient", round(float(gradient.norm()), 3))
plain = torch.exp(-((x[:, None] - y[None]) ** 2).sum(-1) / 0.1) @ weights
(again,) = torch.autograd.grad((plain**2).sum(), x)
print("whole matrices give the same", torch.allclose(plain, summed, atol=1e-3), torch.allclose(again, gradient, rtol=1e-3, atol=1e-2))
