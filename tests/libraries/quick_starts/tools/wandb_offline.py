"""wandb, offline: a run's numbers, watched gradients, tables and tensors as histograms and images."""

import glob
import os
import tempfile

import numpy as np
import torch
import wandb
from torch import nn
from wandb import util

os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=tempfile.mkdtemp())
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((32, 4)).astype(np.float32))
model = nn.Linear(4, 1)
with torch.no_grad():
    model.weight.copy_(torch.tensor([[0.1, 0.2, 0.3, 0.4]]))
    model.bias.zero_()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = wandb.init(project="trial", config={"lr": 0.1}, settings=wandb.Settings(console="off"))
run.watch(model, log="all", log_freq=1)
for _ in range(4):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log({"loss": loss, "weights": wandb.Histogram(model.weight.detach().numpy())})
    print("loss", round(float(loss), 5))
run.log({"picture": wandb.Image(torch.tensor(rng.random((3, 6, 6)).astype(np.float32)))})
print("is a tensor", util.is_pytorch_tensor_typename(util.get_full_typename(x)), util.get_full_typename(x))
plain, changed = util.json_friendly(torch.tensor(3.5))
print("friendly", plain, changed)
print("summary", round(float(run.summary["loss"]), 5), run.config["lr"])
run.finish()
print("written", len(glob.glob(os.environ["WANDB_DIR"] + "/wandb/offline-run-*/*.wandb")))
