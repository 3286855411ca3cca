"""torchviz: the graph of a loss as a drawing, with parameters' names and saved tensors."""

import re

import torch
from torch import nn
from torchviz import make_dot

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.randn(5, 3)
loss = model(x).square().mean()
for options in ({}, {"show_attrs": True}, {"show_saved": True}):
    source = make_dot(loss, params=dict(model.named_parameters()), **options).source
    nodes = [re.sub(r"\\n.*|\n.*", "", label).strip() for label in re.findall(r'label="?([^"\]]*)', source)]
    print(sorted(options), "parameters", [n in source for n in ("0.weight", "0.bias", "2.weight", "2.bias")])
    print(sorted(options), "functions", sorted(set(re.findall(r"\w+Backward0", source)) - {"TBackward0"}))  # a linear layer's transposition
    print(sorted(options), "edges", source.count("->") > 8, bool(nodes))
