"""visdom without a server: plots, images and histograms of tensors, written to a log that a server can replay."""

import json
import os
import tempfile

import numpy as np
import torch
import visdom

log = os.path.join(tempfile.mkdtemp(), "log")
page = visdom.Visdom(offline=True, log_to_filename=log)
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal(20).astype(np.float32))
page.line(Y=x, X=torch.arange(20), win="line", opts={"title": "a line"})
page.line(Y=x[:1] + 1, X=torch.tensor([20]), win="line", update="append")
page.image(torch.tensor(rng.random((3, 8, 8)).astype(np.float32)), win="image")
page.images(torch.tensor(rng.random((4, 3, 8, 8)).astype(np.float32)), nrow=2, win="images")
page.histogram(x, win="histogram", opts={"numbins": 5})
page.heatmap(torch.tensor(rng.random((3, 4)).astype(np.float32)), win="heat")
page.scatter(torch.tensor(rng.random((6, 2)).astype(np.float32)), torch.tensor([1, 1, 2, 2, 3, 3]), win="scatter")
page.text("done", win="text")
with open(log) as f:
    lines = f.read().splitlines()
for line in lines:
    kind, message = json.loads(line)[:2]
    data = message["data"][0] if isinstance(message.get("data"), list) and message["data"] else {}
    values = [v for v in data.get("y") or [] if isinstance(v, float)] if isinstance(data, dict) else []
    print(kind, message.get("win"), data.get("type") if isinstance(data, dict) else "", round(sum(values), 4))
