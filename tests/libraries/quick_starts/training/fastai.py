"""fastai: a learner of tables and one of pictures; a cycle of training, predictions, saving and loading."""

import tempfile
import warnings

import numpy as np
import pandas as pd
import torch
from fastai.basics import DataLoaders, Learner, accuracy, set_seed
from fastai.callback.all import EarlyStoppingCallback
from fastai.data.load import DataLoader
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import F1Score
from fastai.tabular.all import Categorify, CategoryBlock, FillMissing, Normalize, RandomSplitter, TabularPandas, range_of, tabular_learner

warnings.filterwarnings("ignore")
set_seed(0)
rng = np.random.default_rng(0)
x = torch.from_numpy(rng.standard_normal((80, 4)).astype(np.float32))
y = (x[:, 0] + x[:, 1] > 0).long()
pairs = list(zip(x, y, strict=True))
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
for p in model.parameters():
    p.data.copy_(torch.from_numpy(0.5 * rng.standard_normal(p.shape).astype(np.float32)))
loaders = DataLoaders(DataLoader(pairs[:64], bs=16), DataLoader(pairs[64:], bs=16), device=torch.device("cpu"))
with tempfile.TemporaryDirectory() as folder:
    learner = Learner(loaders, model, loss_func=CrossEntropyLossFlat(), metrics=[accuracy, F1Score()], path=folder)
    with learner.no_bar(), learner.no_logging():
        learner.fit(2, 0.05)
        print("losses", [round(float(v), 3) for v in learner.recorder.values[-1][:2]])
        learner.fit_one_cycle(3, 0.05, cbs=EarlyStoppingCallback(patience=5))
        print("steps", len(learner.recorder.lrs), round(max(learner.recorder.lrs), 4))
        print("measured", [round(float(v), 3) for v in learner.validate()])
        found, wanted = learner.get_preds()
        print("predicted", tuple(found.shape), round(float(found.sum()), 3), wanted.sum().item())
        learner.save("kept")
        learner.load("kept")
        print("loaded", round(float(learner.validate()[0]), 3))
    table = pd.DataFrame({"a": rng.random(60), "b": rng.choice(["x", "y", "z"], 60), "c": rng.random(60)})
    table["kind"] = np.where(table.a > table.c, "up", "down")
    splits = RandomSplitter(seed=1)(range_of(table))
    made = TabularPandas(table, [Categorify, FillMissing, Normalize], ["b"], ["a", "c"], "kind", CategoryBlock(), splits=splits)
    learner = tabular_learner(made.dataloaders(bs=16, path=folder), layers=[8], metrics=accuracy)
    with learner.no_bar(), learner.no_logging():
        before = learner.validate()[0]
        learner.fit_one_cycle(5, 0.05)
        print("table learned", learner.validate()[0] < before)
    print("vocabulary", list(made.vocab), len(made.valid))
