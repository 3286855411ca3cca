"""torchopt: functional optimizers, and gradients through the steps of an optimizer (meta-learning)."""

import numpy as np
import torch
import torchopt
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((16, 3)).astype(np.float32))
y = x.sum(-1, keepdim=True)


def network():
    model = nn.Linear(3, 1)
    nn.init.constant_(model.weight, 0.1)
    nn.init.zeros_(model.bias)
    return model


for name, optimizer in {"adam": torchopt.adam(0.1), "sgd": torchopt.sgd(0.1, momentum=0.9), "rmsprop": torchopt.rmsprop(0.05)}.items():
    parameters = tuple(network().parameters())
    state = optimizer.init(parameters)
    for _ in range(4):
        loss = F.mse_loss(x @ parameters[0].T + parameters[1], y)
        gradients = torch.autograd.grad(loss, parameters)
        updates, state = optimizer.update(gradients, state)
        parameters = torchopt.apply_updates(parameters, updates)
    print(name, round(float(loss.detach()), 5))

model = network()
adam = torchopt.Adam(model.parameters(), lr=0.1)
for _ in range(3):
    loss = F.mse_loss(model(x), y)
    adam.zero_grad()
    loss.backward()
    adam.step()
print("as a class", round(float(loss.detach()), 5))

model, scale = network(), torch.tensor(1.0, requires_grad=True)
inner = torchopt.MetaSGD(model, lr=0.1)
start = torchopt.extract_state_dict(model)
for _ in range(3):
    inner.step((model(x) * scale - y).square().mean())
outer = F.mse_loss(model(x), y)
outer.backward()
print("outer", round(float(outer.detach()), 5), "by the scale", round(float(scale.grad), 5))
torchopt.recover_state_dict(model, start)
print("recovered", round(float(model.weight.sum().detach()), 5))
torchopt.stop_gradient(model)
