"""Lightning: a module and a Trainer with callbacks and loggers; a checkpoint that is loaded, and training resumed."""

import os
import tempfile
import warnings

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(0)
rng = np.random.default_rng(0)
inputs, weights = rng.standard_normal((64, 4)).astype(np.float32), rng.standard_normal((4, 1)).astype(np.float32)
data = TensorDataset(torch.from_numpy(inputs), torch.from_numpy(inputs @ weights))


class Regression(L.LightningModule):
    def __init__(self, hidden=8, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1))
        values = np.random.default_rng(1)
        for p in self.parameters():
            p.data.copy_(torch.from_numpy(0.3 * values.standard_normal(p.shape).astype(np.float32)))

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", torch.nn.functional.mse_loss(self.net(x), y), prog_bar=True)

    def predict_step(self, batch, index):
        return self.net(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)}


def loaders():
    return DataLoader(data, batch_size=16), DataLoader(data, batch_size=32)


def trainer(folder, epochs, **settings):
    return L.Trainer(
        max_epochs=epochs, accelerator="cpu", default_root_dir=folder, enable_progress_bar=False, log_every_n_steps=1, **settings
    )


with tempfile.TemporaryDirectory() as folder:
    best = ModelCheckpoint(os.path.join(folder, "kept"), monitor="val_loss", save_top_k=2, save_last=True)
    callbacks = [best, EarlyStopping("val_loss", patience=2), LearningRateMonitor("epoch")]
    first = trainer(
        folder,
        3,
        logger=[CSVLogger(folder), TensorBoardLogger(folder)],
        callbacks=callbacks,
        gradient_clip_val=0.5,
        accumulate_grad_batches=2,
    )
    first.fit(Regression(), *loaders())
    print("train_loss", round(float(first.callback_metrics["train_loss"]), 4))
    print("val_loss", round(float(first.callback_metrics["val_loss"]), 4))
    print("steps", first.global_step)
    with open(os.path.join(first.loggers[0].log_dir, "metrics.csv")) as table:
        print("logged", table.readline().count("loss"))
    loaded = Regression.load_from_checkpoint(best.best_model_path)
    second = trainer(folder, 5, logger=False, enable_checkpointing=False, enable_model_summary=False)
    print("loaded", loaded.hparams.hidden, round(second.validate(loaded, loaders()[1], verbose=False)[0]["val_loss"], 4))
    resumed = Regression()
    second.fit(resumed, *loaders(), ckpt_path=best.last_model_path)
    print("resumed", second.current_epoch, round(float(second.callback_metrics["val_loss"]), 4))
    print("predicted", round(float(torch.cat(second.predict(resumed, loaders()[1])).mean()), 4))
