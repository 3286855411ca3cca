"""einops: tensors rearranged, reduced and multiplied by patterns, and layers that train."""

import einops
import numpy as np
import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
images = torch.tensor(rng.standard_normal((4, 3, 8, 8)).astype(np.float32))
patches = rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
print("patches", tuple(patches.shape), round(float(patches[1, 2, 3]), 5))
print("pooled", round(float(reduce(images, "b c (h p) (w q) -> b c h w", "max", p=2, q=2).sum()), 3))
print("repeated", tuple(repeat(images[:, 0], "b h w -> b (k h) w", k=3).shape))
packed, shapes = pack([images[:, 0], images], "b * w")
print("packed", tuple(packed.shape), [tuple(part.shape) for part in unpack(packed, shapes, "b * w")])
print("einsum", round(float(einsum(images, images, "b c h w, b d h w -> b c d").diagonal(dim1=1, dim2=2).sum()), 2))
print("parsed", einops.parse_shape(images, "batch _ height width"))

mix = EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=16)
with torch.no_grad():
    for parameter in mix.parameters():
        parameter.copy_(torch.tensor(rng.standard_normal(tuple(parameter.shape)).astype(np.float32) * 0.1))
head = nn.Linear(16, 2)
with torch.no_grad():
    head.weight.copy_(torch.tensor(rng.standard_normal((2, 16)).astype(np.float32)))
    head.bias.zero_()
model = nn.Sequential(Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4), mix, nn.ReLU(), Reduce("b t d -> b d", "mean"), head)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
labels = torch.tensor([0, 1, 1, 0])
for step in range(8):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", step, round(float(loss), 4))
