"""hydra: a network and its optimizer from a configuration, composed and overridden."""

import os
import tempfile

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

torch.manual_seed(0)
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "config.yaml"), "w") as f:
    f.write(
        "seed: 0\nwidth: 4\nmodel:\n  _target_: torch.nn.Sequential\n  _args_:\n"
        "    - {_target_: torch.nn.Linear, in_features: 3, out_features: '${width}'}\n    - {_target_: torch.nn.GELU, approximate: tanh}\n"
        "    - {_target_: torch.nn.Linear, in_features: '${width}', out_features: 1, bias: false}\n"
        "optimizer: {_target_: torch.optim.AdamW, _partial_: true, lr: 0.05, betas: [0.9, 0.95]}\n"
        "loss: {_target_: torch.nn.functional.mse_loss, _partial_: true}\nkind: {_target_: torch.full, size: [2, 3], fill_value: 0.5, _convert_: all}\n"
    )
with initialize_config_dir(config_dir=folder, version_base=None):
    config = compose("config", overrides=["width=6", "optimizer.lr=0.1"])
model = instantiate(config.model)
print("model", [type(m).__name__ for m in model], model[0].out_features, model[1].approximate)
optimizer, loss_of = instantiate(config.optimizer)(model.parameters()), instantiate(config.loss)
print("optimizer", type(optimizer).__name__, optimizer.param_groups[0]["lr"], list(optimizer.param_groups[0]["betas"]))
print("class", get_class("torch.nn.Conv2d") is torch.nn.Conv2d, float(instantiate(config.kind).sum()))
x = torch.randn(32, 3)
losses = []
for _ in range(20):
    loss = loss_of(model(x), x.sum(-1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss falls", losses[-1] < losses[0])
print(OmegaConf.to_yaml(config.optimizer).splitlines()[0])
