"""Trainer: sums of gradients over batches, bfloat16, evaluation, checkpoints, and a run that goes on from one."""

import os
import tempfile
import zlib

import numpy as np
import torch
from torch.utils.data import Dataset, SequentialSampler
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

set_seed(0)
config = BertConfig(
    vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24, max_position_embeddings=16, num_labels=2,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip


class Sentences(Dataset):
    """Rows of words, of class 1 where words above 20 prevail."""

    def __init__(self, count, seed):
        self.ids = np.random.RandomState(seed).randint(3, 40, (count, 8))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.ids[i]), "labels": int((self.ids[i] > 20).sum() > 4)}


class InOrder(Trainer):
    """Takes the rows in their order, so that two libraries take the same."""

    def _get_train_sampler(self, train_dataset=None):
        return SequentialSampler(train_dataset if train_dataset is not None else self.train_dataset)


class Seen(TrainerCallback):
    """Counts what the trainer tells."""

    def __init__(self):
        self.steps = self.saves = 0

    def on_step_end(self, args, state, control, **kwargs):
        self.steps += 1

    def on_save(self, args, state, control, **kwargs):
        self.saves += 1


def fresh():
    """The model with weights that depend on the parameters' names alone."""
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model


def accuracy(told):
    return {"accuracy": float((told.predictions.argmax(-1) == told.label_ids).mean())}


def train(folder, resume=None, **options):
    settings = {
        "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "learning_rate": 5e-3, "max_steps": 12, "logging_steps": 4, "save_steps": 6,
        "report_to": [], "use_cpu": True, "disable_tqdm": True, "warmup_steps": 2, "lr_scheduler_type": "cosine", "weight_decay": 0.01,
    }  # fmt: skip
    seen = Seen()
    trainer = InOrder(
        fresh(), TrainingArguments(folder, **{**settings, **options}), train_dataset=Sentences(64, 0), eval_dataset=Sentences(16, 1),
        compute_metrics=accuracy, callbacks=[seen],
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)  # whose lines tell times
    result = trainer.train(resume_from_checkpoint=resume)
    return trainer, result, seen


with tempfile.TemporaryDirectory() as folder:
    trainer, result, seen = train(folder)
    print("loss", round(result.training_loss, 4), "steps", result.global_step, seen.steps, "saves", seen.saves)
    print(
        "logged",
        [(round(e["loss"], 3), round(e["grad_norm"], 3), round(e["learning_rate"], 6)) for e in trainer.state.log_history if "loss" in e],
    )
    told = trainer.evaluate()
    print("evaluated", round(told["eval_loss"], 4), told["eval_accuracy"])
    print("predicted", round(float(np.abs(trainer.predict(Sentences(4, 2)).predictions).sum()), 4))
    print(
        "checkpoints",
        sorted(f for f in os.listdir(folder) if f.startswith("checkpoint")),
        "optimizer.pt" in os.listdir(f"{folder}/checkpoint-6"),
    )
    first = trainer.model.state_dict()
    again, result, _ = train(folder, resume=f"{folder}/checkpoint-6")
    print("resumed", result.global_step, max(float((first[k] - v).abs().max()) for k, v in again.model.state_dict().items()) < 1e-6)
with tempfile.TemporaryDirectory() as folder:
    _, result, _ = train(folder, bf16=True, max_grad_norm=0.5, save_strategy="no")
    print("bfloat16", round(result.training_loss, 2))
with tempfile.TemporaryDirectory() as folder:
    trainer, result, _ = train(
        folder, gradient_checkpointing=True, optim="adafactor", save_strategy="no", eval_strategy="steps", eval_steps=6
    )
    print("adafactor", round(result.training_loss, 4), [round(e["eval_loss"], 4) for e in trainer.state.log_history if "eval_loss" in e])
    trainer.save_model(f"{folder}/final")
    loaded = BertForSequenceClassification.from_pretrained(f"{folder}/final")
    print("saved", all(torch.equal(a, b) for a, b in zip(loaded.state_dict().values(), trainer.model.state_dict().values(), strict=True)))
