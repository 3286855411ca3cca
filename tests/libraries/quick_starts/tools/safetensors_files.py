"""safetensors: state dicts and models in files without code, read whole, by name and by slice."""

import os
import tempfile

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

folder = tempfile.mkdtemp()
path = os.path.join(folder, "tensors.safetensors")
tensors = {
    "halves": torch.arange(6, dtype=torch.float16).view(2, 3), "brain": torch.linspace(0, 1, 4, dtype=torch.bfloat16), "whole": torch.arange(5),
    "flags": torch.tensor([True, False]), "bytes": torch.arange(3, dtype=torch.uint8), "doubles": torch.ones(2, 2, dtype=torch.float64) / 3, "empty": torch.zeros(0, 3),
}  # fmt: skip
save_file(tensors, path, metadata={"made": "by hand"})
read = load_file(path)
for name in sorted(read):
    print(name, read[name].dtype, tuple(read[name].shape), bool(torch.equal(read[name], tensors[name])))
with safe_open(path, framework="pt", device="cpu") as f:
    print("keys", sorted(f.keys()), f.metadata())
    part = f.get_slice("halves")
    print("slice", part.get_shape(), part[:, 1:].tolist(), f.get_tensor("whole")[1:3].tolist())
print("bytes", sorted(load(save({"a": torch.ones(3)}))))

model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4, bias=False))
model[2].weight = model[0].weight
with torch.no_grad():
    model[0].weight.copy_(torch.tensor(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)))
save_model(model, os.path.join(folder, "model.safetensors"))
again = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4, bias=False))
again[2].weight = again[0].weight
print("missing", load_model(again, os.path.join(folder, "model.safetensors")))
print("weight", round(float(again[2].weight.sum()), 5), bool(torch.equal(again[2].weight, model[2].weight)))
try:
    save_file({"a": model[0].weight, "b": model[2].weight}, path)
except RuntimeError as error:
    print("shared memory is refused", "share memory" in str(error))
