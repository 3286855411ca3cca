"""curvlinops: the Hessian, the Gauss-Newton matrix and Kronecker factors of a network as linear operators."""

import numpy as np
import torch
from curvlinops import GGNLinearOperator, HessianLinearOperator, KFACLinearOperator, hutchinson_trace
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
data = [(torch.tensor(rng.standard_normal((8, 4))), torch.tensor(rng.integers(0, 3, 8))) for _ in range(3)]
model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).double()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.tensor(0.5 * rng.standard_normal(tuple(p.shape))))
params = list(model.parameters())
vector = torch.tensor(rng.standard_normal(sum(p.numel() for p in model.parameters())))
for reduction in ("mean", "sum"):
    loss_of = nn.CrossEntropyLoss(reduction=reduction)
    for kind in (HessianLinearOperator, GGNLinearOperator):
        operator = kind(model, loss_of, params, data)
        product = operator @ vector
        print(reduction, kind.__name__, tuple(operator.shape), round(float(product.norm()), 4), round(float(product @ vector), 4))
operator = GGNLinearOperator(model, nn.CrossEntropyLoss(), params, data)
dense = operator @ torch.eye(operator.shape[1], dtype=torch.float64)
eigenvalues = torch.linalg.eigvalsh(dense)
print("eigenvalues", *[round(float(v), 4) for v in eigenvalues[-3:]], "none below 0", bool(eigenvalues[0] > -1e-10))
print("trace is near", abs(float(hutchinson_trace(operator, num_matvecs=30)) / float(dense.trace()) - 1) < 0.5)
factors = KFACLinearOperator(model, nn.CrossEntropyLoss(), params, data, fisher_type="type-2")
print("kfac", round(float((factors @ vector).norm()), 4))
