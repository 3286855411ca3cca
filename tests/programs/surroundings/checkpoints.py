"""Recipes for files: state_dict, checkpoints with all around, several models in one, warm start, devices, whole models, bytes in memory."""

import copy
import io
import os
import pickle
import tempfile
import warnings
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self, width=4, extra=False):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3)
        self.bn = nn.BatchNorm2d(width)
        self.fc = nn.Linear(width * 4, 3)
        if extra:
            self.head = nn.Linear(3, 2)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        return self.fc(F.max_pool2d(F.relu(self.bn(self.conv1(x))), 3).flatten(1))


def fill(model, seed=0):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


rng = np.random.default_rng(0)
x, y = torch.tensor(rng.standard_normal((12, 1, 8, 8)), dtype=torch.float32), torch.tensor(rng.integers(0, 3, 12))
where = tempfile.mkdtemp()
PATH = os.path.join(where, "model.tar")

net = fill(Net())
optimizer = optim.Adam(net.parameters(), lr=0.01, amsgrad=True)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)


def step(net, optimizer, scheduler):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss


print("Model's state_dict:")
for name in net.state_dict():
    print(name, "\t", net.state_dict()[name].size())
print("Optimizer's state_dict:")
for name in optimizer.state_dict():
    print(name, "\t", optimizer.state_dict()[name])
for epoch in range(3):
    loss = step(net, optimizer, scheduler)
torch.save(
    {
        "epoch": epoch,
        "model_state_dict": net.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "loss": loss,
        "rng": torch.get_rng_state(),
        "args": {"lr": 0.01, "tags": ("a", "b")},
    },
    PATH,
)
ongoing = [round(step(net, optimizer, scheduler).item(), 5) for _ in range(3)]
again = Net()
opt2 = optim.Adam(again.parameters(), lr=0.5, amsgrad=True)
sch2 = optim.lr_scheduler.CosineAnnealingLR(opt2, T_max=3)
checkpoint = torch.load(PATH, weights_only=True)
print(again.load_state_dict(checkpoint["model_state_dict"]))
opt2.load_state_dict(checkpoint["optimizer_state_dict"])
sch2.load_state_dict(checkpoint["scheduler"])
print(checkpoint["epoch"], checkpoint["loss"], checkpoint["args"], checkpoint["rng"].dtype)
print([round(step(again, opt2, sch2).item(), 5) for _ in range(3)] == ongoing, ongoing, sch2.get_last_lr(), sch2.last_epoch)
print(again.calls, sorted(opt2.state[again.fc.bias]), opt2.state[again.fc.bias]["step"])

a, b = fill(Net(), 1), fill(Net(), 2)
torch.save({"modelA": a.state_dict(), "modelB": b.state_dict()}, PATH)
both = torch.load(PATH)
c = Net()
c.load_state_dict(both["modelB"])
print(torch.equal(c.fc.weight, b.fc.weight), type(both["modelA"]).__name__, both["modelA"]._metadata["bn"])

bigger = fill(Net(extra=True), 3)
result = bigger.load_state_dict(both["modelA"], strict=False)
print(result, result.missing_keys, result.unexpected_keys)
try:
    bigger.load_state_dict(both["modelA"])
except RuntimeError as e:
    print("\t" + str(e).splitlines()[1].strip())
try:
    Net(width=5).load_state_dict(both["modelA"], strict=False)
except RuntimeError as e:
    print(str(e).splitlines()[1].strip()[:33])
print(Net().load_state_dict(bigger.state_dict(), strict=False))
renamed = OrderedDict(("module." + k, v) for k, v in both["modelA"].items())
torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(renamed, "module.")
print(Net().load_state_dict(renamed))
wrapped = nn.DataParallel(Net())
print(list(wrapped.state_dict())[0])

for location in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, loc: storage):
    print(torch.load(PATH, map_location=location, weights_only=True)["modelA"]["fc.bias"].device)
buffer = io.BytesIO()
torch.save({"x": torch.arange(3), "nested": [torch.ones(2, dtype=torch.bfloat16), (1, "two", None)]}, buffer)
buffer.seek(0)
print(torch.load(buffer))
blob = buffer.getvalue()
print(blob[:2], torch.load(io.BytesIO(blob))["nested"][0].dtype)
model_path = os.path.join(where, "whole.pth")
torch.save(a, model_path)
whole = torch.load(model_path, weights_only=False)
whole.eval()
a.eval()
print(type(whole).__name__, torch.equal(whole(x), a(x)), whole.training)
try:
    torch.load(model_path)
except pickle.UnpicklingError as e:
    print("UnpicklingError", "weights_only" in str(e).lower())
base = torch.arange(10.0)
torch.save([base[:4], base[2:8], base], PATH)
one, two, three = torch.load(PATH)
one[2] = 100
print(two, three[2], one.untyped_storage().data_ptr() == three.untyped_storage().data_ptr())
tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
tied[1].weight = tied[0].weight
print(len(list(tied.parameters())), list(copy.deepcopy(tied).state_dict()))
back = pickle.loads(pickle.dumps(tied))
print(back[0].weight is back[1].weight)
with torch.serialization.safe_globals([Net]):
    print(Net in torch.serialization.get_safe_globals())
with open(PATH, "wb") as f:
    torch.save(net.state_dict(), f)
with open(PATH, "rb") as f:
    print(len(torch.load(f)))
torch.save(net.state_dict(), PATH, _use_new_zipfile_serialization=False)
print(len(torch.load(PATH, mmap=False)))
try:
    torch.load(os.path.join(where, "absent.pt"))
except FileNotFoundError as e:
    print("FileNotFoundError", e.errno)
with open(PATH, "wb") as f:
    f.write(b"nothing")
try:
    torch.load(PATH)
except Exception as e:
    print(isinstance(e, (RuntimeError, pickle.UnpicklingError, EOFError)))
numpy_state = {"array": np.arange(3), "scalar": np.float64(2.5)}
torch.save(numpy_state, PATH)
print(torch.load(PATH, weights_only=False))
