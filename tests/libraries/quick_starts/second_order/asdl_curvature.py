"""ASDL: Fisher matrices and Kronecker factors of a classifier, and steps of training that they precondition."""

import asdl
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
inputs = torch.tensor(rng.standard_normal((12, 4)), dtype=torch.float32)
labels = torch.tensor(rng.integers(0, 3, 12))


def network() -> nn.Sequential:
    """A network with weights drawn by numpy."""
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    weights = np.random.default_rng(1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(0.5 * weights.standard_normal(tuple(p.shape))))
    return model


for shape in (asdl.SHAPE_FULL, asdl.SHAPE_DIAG, asdl.SHAPE_KRON):
    model = network()
    config = asdl.FisherConfig(asdl.FISHER_EXACT, shape, loss_type=asdl.LOSS_CROSS_ENTROPY, data_size=len(inputs))
    maker = asdl.get_fisher_maker(model, config)
    maker.setup_logits_repr(maker.setup_model_call(model, inputs))
    maker.forward_and_backward()
    owners = [model] if shape == asdl.SHAPE_FULL else [m for m in model if isinstance(m, nn.Linear)]
    for i, owner in enumerate(owners):
        found = owner.fisher
        if shape == asdl.SHAPE_KRON:
            print(shape, i, round(float(found.kron.A.sum()), 4), round(float(found.kron.B.abs().sum()), 4))
        elif shape == asdl.SHAPE_DIAG:
            print(shape, i, round(float(found.diag.weight.sum()), 5), round(float(found.diag.bias.sum()), 5))
        else:
            print(shape, tuple(found.data.shape), round(float(found.data.trace()), 5))

model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
maker = asdl.KfacGradientMaker(model, asdl.PreconditioningConfig(data_size=len(inputs), damping=0.1), fisher_type=asdl.FISHER_EMP)
losses = []
for _ in range(12):
    optimizer.zero_grad()
    output = maker.setup_model_call(model, inputs)
    maker.setup_loss_call(nn.CrossEntropyLoss(), output, labels)
    _, loss = maker.forward_and_backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", *[round(v, 3) for v in losses[::3]])
