"""PyHessian: the largest eigenvalues and the trace of a network's Hessian by products with vectors."""

import contextlib
import io

import numpy as np
import torch
from pyhessian import hessian
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
inputs = torch.tensor(rng.standard_normal((32, 4)), dtype=torch.float32)
labels = torch.tensor(rng.integers(0, 2, 32))
model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.tensor(0.5 * rng.standard_normal(tuple(p.shape))))
criterion = nn.CrossEntropyLoss()
with contextlib.redirect_stdout(io.StringIO()):
    found = hessian(model, criterion, data=(inputs, labels), cuda=False)
    values, vectors = found.eigenvalues(maxIter=500, tol=1e-6, top_n=2)
    trace = np.mean(found.trace(maxIter=500, tol=1e-5))
print("eigenvalues", *[round(float(v), 3) for v in values])
print("vectors", len(vectors), [tuple(v.shape) for v in vectors[0]])

params = list(model.parameters())
gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(criterion(model(inputs), labels), params, create_graph=True)])
whole = torch.stack([torch.cat([h.reshape(-1) for h in torch.autograd.grad(g, params, retain_graph=True)]) for g in gradient])
exact = torch.linalg.eigvalsh(whole)
print("exact", round(float(exact[-1]), 4), round(float(exact.sum()), 4))
print("the first is the largest", abs(values[0] - float(exact[-1])) < 0.01 * float(exact[-1]))
print("the trace is near", abs(trace - float(exact.sum())) < 0.3 * float(exact.sum()))
