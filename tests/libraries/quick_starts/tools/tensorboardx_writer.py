"""tensorboardX: scalars, histograms, images, embeddings and text of a training run, and the file that they are in."""

import glob
import os
import tempfile

import numpy as np
import torch
from tensorboardX import SummaryWriter
from tensorboardX.x2num import make_np
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((16, 3)).astype(np.float32))
model = nn.Linear(3, 1)
with torch.no_grad():
    model.weight.copy_(torch.tensor([[0.5, -0.25, 1.0]]))
    model.bias.zero_()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
folder = tempfile.mkdtemp()
with SummaryWriter(folder) as writer:
    for step in range(5):
        loss = (model(x).squeeze(-1) - x.sum(-1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        writer.add_scalar("loss", loss, step)
        writer.add_scalars("weights", {"first": model.weight[0, 0].item(), "second": model.weight[0, 1].item()}, step)
        print("loss", round(float(loss), 5))
    for name, parameter in model.named_parameters():
        writer.add_histogram(name, parameter, 5)
    writer.add_image("noise", torch.tensor(rng.random((3, 8, 8)).astype(np.float32)), 0)
    writer.add_embedding(x, metadata=[str(i) for i in range(16)])
    writer.add_text("note", "trained", 5)
    writer.add_pr_curve("curve", torch.tensor([1, 0, 1, 1]), torch.tensor([0.9, 0.4, 0.6, 0.3]), 0)
    writer.add_hparams({"lr": 0.1}, {"loss": loss.item()})
converted = make_np(x)
print("converted", type(converted).__name__, converted.shape, round(float(converted.sum()), 4))
print("events", sum(os.path.getsize(f) for f in glob.glob(folder + "/events*")) > 1000)
print("embedding", os.path.exists(os.path.join(folder, "00000", "default", "tensors.tsv")))
