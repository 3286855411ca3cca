"""mlflow: a run's numbers in a local store, and a network logged, loaded and served as a function."""

import os
import tempfile

import mlflow
import mlflow.pytorch
import numpy as np
import torch
from torch import nn

folder = tempfile.mkdtemp()
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.chdir(folder)
mlflow.set_tracking_uri("sqlite:///" + os.path.join(folder, "runs.db"))
rng = np.random.default_rng(0)
x = rng.standard_normal((16, 3)).astype(np.float32)
model = nn.Sequential(nn.Linear(3, 2), nn.Sigmoid())
with torch.no_grad():
    model[0].weight.copy_(torch.tensor(rng.standard_normal((2, 3)).astype(np.float32)))
    model[0].bias.zero_()
with mlflow.start_run() as run:
    mlflow.log_params({"width": 2})
    for step in range(3):
        mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
print("metric", round(mlflow.get_run(run.info.run_id).data.metrics["loss"], 4), mlflow.get_run(run.info.run_id).data.params)
path = os.path.join(folder, "model")
mlflow.pytorch.save_model(model, path, pip_requirements=["torch"], serialization_format="pickle")
loaded = mlflow.pytorch.load_model(path)
print("loaded", type(loaded).__name__, round(float(loaded(torch.tensor(x)).sum()), 4))
served = mlflow.pyfunc.load_model(path)
print("served", round(float(np.asarray(served.predict(x)).sum()), 4))
mlflow.pytorch.save_state_dict(model.state_dict(), os.path.join(folder, "state"))
print("state", sorted(mlflow.pytorch.load_state_dict(os.path.join(folder, "state"))))
