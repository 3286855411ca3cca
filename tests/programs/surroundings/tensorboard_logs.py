"""A tensorboard tutorial's shape: scalars, a grid of images, the graph, curves, an embedding; read back by tensorboard's own reader."""

import glob
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(6 * 6 * 6, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        return self.fc1(x.view(-1, 6 * 6 * 6))


def fill(model, seed=0):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


rng = np.random.default_rng(0)
images = torch.tensor(rng.random((16, 1, 16, 16)), dtype=torch.float32)
labels = torch.tensor(rng.integers(0, 10, 16))
classes = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot")
where = tempfile.mkdtemp()
writer = SummaryWriter(os.path.join(where, "fashion"), comment="x", flush_secs=1)
print(os.path.basename(writer.get_logdir()), writer.log_dir == writer.get_logdir())
grid = torchvision.utils.make_grid(images)
writer.add_image("four_images", grid)
writer.add_images("batch", images, 0)
net = fill(Net())
writer.add_graph(net, images)
features = images.view(-1, 16 * 16)
writer.add_embedding(features, metadata=[classes[i] for i in labels], label_img=images)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
running = 0.0
for i in range(8):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    running += loss.item()
    if i % 2 == 1:
        writer.add_scalar("training loss", running / 2, i)
        writer.add_scalars("both", {"train": running, "half": running / 2}, i)
        running = 0.0
    writer.add_histogram("fc1.weight", net.fc1.weight, i)
probs = F.softmax(net(images), dim=1)
for k in range(2):
    writer.add_pr_curve(classes[k], labels == k, probs[:, k], global_step=0)
writer.add_text("note", "a *line*", 3)
writer.add_hparams({"lr": 0.05, "bsize": 16, "name": "sgd"}, {"hparam/loss": loss.item()}, run_name="h")
writer.add_mesh("cloud", torch.rand(1, 5, 3))
writer.add_custom_scalars({"Part": {"losses": ["Multiline", ["training loss", "both"]]}})
writer.flush()
writer.close()
events = EventAccumulator(os.path.join(where, "fashion"), size_guidance={"scalars": 0, "tensors": 0, "histograms": 0, "images": 0})
events.Reload()
tags = events.Tags()
for kind in ("graph", "histograms", "images", "scalars", "tensors"):
    print(kind, sorted(tags[kind]) if isinstance(tags[kind], list) else tags[kind])
for e in events.Scalars("training loss"):
    print(e.step, round(e.value, 4))
for e in events.Histograms("fc1.weight")[:2]:
    print(e.step, round(e.histogram_value.min, 4), round(e.histogram_value.max, 4), e.histogram_value.num, round(e.histogram_value.sum, 3))
for e in events.Images("four_images"):
    print(e.step, e.width, e.height)
graph = events.Graph()
print(any("conv1" in n.name for n in graph.node))
print(
    events.Tensors("Dress/pr_curves")[0].tensor_proto.tensor_shape.dim[1].size
    if "Dress/pr_curves" in tags["tensors"]
    else [t for t in tags["tensors"]]
)
files = sorted(os.path.relpath(f, where) for f in glob.glob(where + "/**/*", recursive=True) if "tfevents" not in f and os.path.isfile(f))
print(files)
print(open(os.path.join(where, "fashion", "projector_config.pbtxt")).read())
print(open(os.path.join(where, "fashion", "00000", "default", "metadata.tsv")).read().split()[:3])
print(sorted(d for d in os.listdir(os.path.join(where, "fashion")) if os.path.isdir(os.path.join(where, "fashion", d))))
with SummaryWriter(os.path.join(where, "second"), purge_step=3, filename_suffix=".x") as w:
    w.add_scalar("a", torch.tensor(1.5), 3, walltime=12.0)
    w.add_scalar("a", np.float32(2.5), 4, new_style=True)
    w.add_scalar("b", 2, double_precision=True)
    w.add_histogram("h", np.arange(10), 0, bins="auto")
    w.add_image("hwc", np.zeros((4, 5, 3), np.uint8), dataformats="HWC")
    w.add_image("hw", np.zeros((4, 5)), dataformats="HW")
again = EventAccumulator(os.path.join(where, "second"))
again.Reload()
print(again.Tags()["scalars"], again.Tags()["tensors"], [e.wall_time for e in again.Scalars("a")], again.Tags()["images"])
