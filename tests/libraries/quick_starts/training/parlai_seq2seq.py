"""ParlAI: a dictionary, a task from a file, and a transformer that answers, trained, evaluated, saved and asked."""

import os
import tempfile

import torch
from parlai.core.agents import create_agent
from parlai.scripts.train_model import TrainModel
from parlai.utils import logging

torch.manual_seed(0)
logging.disable()
folder = tempfile.mkdtemp()
for fold in ("train", "valid", "test"):
    with open(os.path.join(folder, f"talk_{fold}.txt"), "w") as f:
        for word, answer in (("sun", "day"), ("moon", "night"), ("fire", "hot"), ("ice", "cold")):
            f.write(f"text:what of the {word}?\tlabels:it is {answer}\tepisode_done:True\n")
model_file = os.path.join(folder, "model")
report = TrainModel.main(
    task="fromfile:parlaiformat", fromfile_datapath=os.path.join(folder, "talk"), fromfile_datatype_extension=True, model="transformer/generator",
    model_file=model_file, n_layers=1, n_heads=2, embedding_size=16, ffn_size=16, batchsize=4, num_epochs=60, learningrate=0.02, optimizer="adam",
    lr_scheduler="fixed", gradient_clip=1.0, dropout=0.0, skip_generation=True, no_cuda=True, verbose=False, save_after_valid=True,
    validation_every_n_epochs=30, log_every_n_secs=-1, tensorboard_log=False, validation_metric="ppl", validation_metric_mode="min",
)  # fmt: skip
losses = [float(r["loss"]) for r in report]
print("losses are small", all(loss < 1.0 for loss in losses), "accuracy", all(float(r["token_acc"]) > 0.8 for r in report))
print("files", sorted(n for n in os.listdir(folder) if n in ("model", "model.dict", "model.opt")))
agent = create_agent(
    {"model_file": model_file, "no_cuda": True, "override": {"skip_generation": False, "inference": "greedy", "no_cuda": True}},
    requireModelExists=True,
)
agent.observe({"text": "what of the ice?", "episode_done": True})
print("answer", agent.act()["text"])
