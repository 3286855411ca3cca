"""Lightning Fabric: a loop of one's own, with precision, checkpoints and reductions by Fabric; on two processes by DDP where fabric starts them."""

import os
import tempfile
import warnings

import numpy as np
import torch
from lightning.fabric import Fabric

warnings.filterwarnings("ignore")
torch.manual_seed(0)
rng = np.random.default_rng(0)
x = torch.from_numpy(rng.standard_normal((32, 3)).astype(np.float32))
y = torch.from_numpy(rng.standard_normal((32, 1)).astype(np.float32))
fabric = Fabric(accelerator="cpu", devices=1)
fabric.launch()
model = torch.nn.Linear(3, 1)
with torch.no_grad():
    model.weight.copy_(torch.tensor([[0.1, -0.2, 0.3]]))
    model.bias.zero_()
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8))
for _ in range(2):
    for a, b in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(a), b)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
print("loss", round(float(loss), 4))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "state.ckpt")
    fabric.save(path, {"model": model, "optimizer": optimizer, "step": 8})
    other = fabric.setup_module(torch.nn.Linear(3, 1))
    state = {"model": other, "step": 0}
    rest = fabric.load(path, state)
    print("loaded", state["step"], sorted(rest), bool((other.weight == model.weight).all()))
print("reduced", round(float(fabric.all_reduce(loss.detach(), reduce_op="mean")), 4), fabric.world_size)
low = Fabric(accelerator="cpu", precision="bf16-mixed")
with low.autocast():
    print("autocast", (x @ model.weight.T).dtype)
