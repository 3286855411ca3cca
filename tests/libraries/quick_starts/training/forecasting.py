"""PyTorch Forecasting: series in a table, a temporal fusion transformer and a baseline, trained by Lightning."""

import logging
import warnings

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import torch
from pytorch_forecasting import Baseline, TemporalFusionTransformer, TimeSeriesDataSet
from pytorch_forecasting.data import GroupNormalizer
from pytorch_forecasting.metrics import MAE, SMAPE, QuantileLoss

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
pl.seed_everything(0, verbose=False)
rng = np.random.default_rng(0)
rows = [
    {"series": str(s), "time": t, "value": 5 + s + np.sin(t / 3) + 0.1 * rng.standard_normal(), "month": str(t % 12)}
    for s in range(3)
    for t in range(40)
]
table = pd.DataFrame(rows)
settings = {
    "time_idx": "time", "target": "value", "group_ids": ["series"], "max_encoder_length": 12, "max_prediction_length": 4,
    "static_categoricals": ["series"], "time_varying_known_categoricals": ["month"], "time_varying_known_reals": ["time"],
    "time_varying_unknown_reals": ["value"], "target_normalizer": GroupNormalizer(groups=["series"]),
}  # fmt: skip
training = TimeSeriesDataSet(table[table.time < 36], **settings)
validation = TimeSeriesDataSet.from_dataset(training, table, predict=True, stop_randomization=True)
train, valid = (
    training.to_dataloader(train=True, batch_size=16, num_workers=0),
    validation.to_dataloader(train=False, batch_size=3, num_workers=0),
)
print("samples", len(training), len(validation))
x, (y, _) = next(iter(valid))
print("batch", tuple(x["encoder_cont"].shape), round(float(y.mean()), 4))
print("baseline", round(float(MAE()(Baseline().predict(valid), y)), 4))
model = TemporalFusionTransformer.from_dataset(
    training, hidden_size=8, attention_head_size=1, hidden_continuous_size=4, loss=QuantileLoss(), learning_rate=0.03
)
with torch.no_grad():
    for _, p in sorted(model.named_parameters()):
        p.copy_(torch.from_numpy(np.asarray(0.2 * rng.standard_normal(p.shape), np.float32)))
model.eval()
out = model(x)["prediction"]
print("untrained", tuple(out.shape), round(float(out.mean()), 3), round(float(model.loss(out, (y, None))), 3))
before = float(SMAPE()(model.to_prediction(model(x)), y))
trainer = pl.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    gradient_clip_val=0.1, limit_train_batches=6,
)  # fmt: skip
trainer.fit(model, train, valid)
model.eval()
print("trained", float(SMAPE()(model.to_prediction(model(x)), y)) < before)
