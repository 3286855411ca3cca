"""ray's torch utilities: tensors and networks through tasks and actors, and batches from ray data."""

import logging

import numpy as np
import ray
import ray.data
import torch
from torch import nn

ray.init(
    num_cpus=2,
    include_dashboard=False,
    log_to_driver=False,
    logging_level=logging.ERROR,
    object_store_memory=100 * 2**20,
    configure_logging=False,
)
x = torch.tensor(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))
stored = ray.get(ray.put({"x": x, "kind": torch.float64}))
print("stored", bool(torch.equal(stored["x"], x)), stored["kind"])


@ray.remote
def double(t):
    return t * 2


@ray.remote
class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1, bias=False)
        nn.init.constant_(self.model.weight, 0.5)

    def step(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        with torch.no_grad():
            self.model.weight -= 0.1 * self.model.weight.grad
        self.model.weight.grad = None
        return loss.item()

    def state(self):
        return self.model.state_dict()


print("task", round(float(ray.get(double.remote(x)).sum()), 4))
trainer = Trainer.remote()
print("losses", [round(ray.get(trainer.step.remote(x)), 4) for _ in range(3)])
print("state", round(float(ray.get(trainer.state.remote())["weight"].sum()), 4))
ray.shutdown()
