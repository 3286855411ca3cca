"""MONAI: a UNet of volumes, losses and metrics of segmentation, transforms of dictionaries, inference by windows."""

import monai
import numpy as np
import torch
from monai.data import CacheDataset, DataLoader, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss, TverskyLoss
from monai.metrics import ConfusionMatrixMetric, DiceMetric, HausdorffDistanceMetric, MeanIoU
from monai.networks.nets import UNet
from monai.transforms import AsDiscrete, Compose, EnsureChannelFirstd, EnsureTyped, RandFlipd, ScaleIntensityd, SpatialPadd

monai.utils.set_determinism(0)
rng = np.random.default_rng(0)
items = [
    {"image": rng.random((14, 14, 14)).astype(np.float32), "label": (rng.random((14, 14, 14)) > 0.5).astype(np.float32)} for _ in range(4)
]
keys = ["image", "label"]
prepare = Compose([
    EnsureChannelFirstd(keys, channel_dim="no_channel"), ScaleIntensityd("image"), SpatialPadd(keys, (16, 16, 16)), RandFlipd(keys, prob=1.0, spatial_axis=0),
    EnsureTyped(keys),
])  # fmt: skip
loader = DataLoader(CacheDataset(items, prepare, progress=False), batch_size=2)
batch = next(iter(loader))
print("batch", tuple(batch["image"].shape), round(float(batch["image"].mean()), 4), round(float(batch["label"].sum()), 1))
model = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1)
with torch.no_grad():
    for _, p in sorted(model.named_parameters()):
        p.copy_(torch.from_numpy(np.asarray(0.2 * rng.standard_normal(p.shape), np.float32)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
image, label = (torch.as_tensor(batch[k]).clone() for k in keys)
for loss in (
    DiceLoss(to_onehot_y=True, softmax=True),
    DiceCELoss(to_onehot_y=True, softmax=True),
    FocalLoss(to_onehot_y=True),
    TverskyLoss(to_onehot_y=True, softmax=True),
):
    print(type(loss).__name__, round(float(loss(model(image), label)), 4))
losses = []
for _ in range(4):
    optimizer.zero_grad()
    value = DiceLoss(to_onehot_y=True, softmax=True)(model(image), label)
    value.backward()
    optimizer.step()
    losses.append(float(value))
print("trained", round(losses[-1], 3), losses[-1] < losses[0])
model.eval()
with torch.no_grad():
    whole = sliding_window_inference(image, (16, 16, 16), 2, model, overlap=0.25)
print("windows", tuple(whole.shape), round(float((whole - model(image)).abs().max()), 4))
found = [AsDiscrete(argmax=True, to_onehot=2)(x) for x in decollate_batch(whole)]
wanted = [AsDiscrete(to_onehot=2)(x) for x in decollate_batch(label)]
dice, iou, far = DiceMetric(include_background=False), MeanIoU(), HausdorffDistanceMetric()
for metric in (dice, iou, far):
    metric(found, wanted)
print("measured", [round(float(m.aggregate()), 3) for m in (dice, iou, far)])
matrix = ConfusionMatrixMetric(metric_name="sensitivity")
matrix(found, wanted)
print("sensitivity", round(float(matrix.aggregate()[0]), 3))
