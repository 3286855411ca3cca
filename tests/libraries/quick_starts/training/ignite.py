"""Ignite: an engine that trains and one that evaluates, metrics, handlers, checkpoints."""

import tempfile

import numpy as np
import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, ModelCheckpoint, global_step_from_engine
from ignite.metrics import Accuracy, ConfusionMatrix, Fbeta, Loss, RunningAverage

torch.manual_seed(0)
rng = np.random.default_rng(0)
x = torch.from_numpy(rng.standard_normal((60, 5)).astype(np.float32))
y = torch.from_numpy((rng.standard_normal((60,)) + x[:, 0].numpy() > 0).astype(np.int64))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=20)
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
for p in model.parameters():
    p.data.copy_(torch.from_numpy(0.4 * rng.standard_normal(p.shape).astype(np.float32)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
trainer = create_supervised_trainer(model, optimizer, torch.nn.CrossEntropyLoss())
metrics = {"accuracy": Accuracy(), "loss": Loss(torch.nn.CrossEntropyLoss()), "f1": Fbeta(1.0), "matrix": ConfusionMatrix(2)}
evaluator = create_supervised_evaluator(model, metrics=metrics)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running")


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader)
    print("epoch", engine.state.epoch, round(engine.state.metrics["running"], 4), round(evaluator.state.metrics["loss"], 4))


with tempfile.TemporaryDirectory() as folder:
    kept = ModelCheckpoint(
        folder,
        "best",
        n_saved=1,
        score_function=lambda e: e.state.metrics["accuracy"],
        global_step_transform=global_step_from_engine(trainer),
    )
    evaluator.add_event_handler(Events.COMPLETED, kept, {"model": model, "optimizer": optimizer})
    evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, lambda e: -e.state.metrics["loss"], trainer))
    trainer.run(loader, max_epochs=4)
    saved = torch.load(kept.last_checkpoint)
    print("saved", sorted(saved))
    ModelCheckpoint.load_objects({"model": model, "optimizer": optimizer}, saved)
    state = evaluator.run(loader)
print("accuracy", round(state.metrics["accuracy"], 4))
print("f1", round(float(state.metrics["f1"]), 4))
print("matrix", state.metrics["matrix"].flatten().tolist())
