"""timm: networks by name, from weights of numpy; features, a new head, optimizers, schedules, augmentation, a moving average of weights."""

import tempfile

import numpy as np
import timm
import torch
from timm.data import Mixup, create_transform, resolve_data_config
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3, accuracy

torch.manual_seed(0)
rng = np.random.default_rng(0)


def fill(model):
    """The same weights under every library: small ones of numpy's, in the order of the names."""
    with torch.no_grad():
        for name, t in sorted(model.state_dict().items()):
            if t.is_floating_point():
                scale = 0.1 if t.ndim > 1 else 0.0
                t.copy_(
                    torch.from_numpy(
                        np.asarray(scale * rng.standard_normal(t.shape) + (1 if t.ndim <= 1 and "bias" not in name else 0), np.float32)
                    )
                )
    return model


images = torch.from_numpy(rng.random((2, 3, 64, 64)).astype(np.float32))
for name, settings in (
    ("resnet10t", {}), ("efficientnet_lite0", {}), ("mobilenetv3_small_050", {}), ("vit_tiny_patch16_224", {"img_size": 64, "depth": 2}),
    ("convnext_atto", {}), ("mixer_s32_224", {"img_size": 64}),
):  # fmt: skip
    model = fill(timm.create_model(name, pretrained=False, num_classes=5, **settings)).eval()
    with torch.no_grad():
        scores = model(images)
    print(name, sum(p.numel() for p in model.parameters()), [round(float(s), 3) for s in (scores / scores.abs().max())[0, :3]])
body = timm.create_model("resnet10t", features_only=True, out_indices=(1, 3))
print("features", [tuple(f.shape) for f in body(images)], body.feature_info.channels())
model = timm.create_model("resnet10t", num_classes=4)
model.reset_classifier(3)
fill(model)
print("head", tuple(model.get_classifier().weight.shape), model.num_features)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=1e-5)
average = ModelEmaV3(model, decay=0.9)
labels = torch.tensor([0, 2])
losses = []
for step in range(4):
    optimizer.zero_grad()
    loss = LabelSmoothingCrossEntropy(0.1)(model(images), labels)
    loss.backward()
    optimizer.step()
    average.update(model)
    schedule.step(step + 1)
    losses.append(float(loss))
print("loss falls", losses[-1] < losses[0])
print("lr", round(optimizer.param_groups[0]["lr"], 6))
print("groups", len(optimizer.param_groups), [len(g["params"]) for g in optimizer.param_groups])
mixed, targets = Mixup(mixup_alpha=0.2, num_classes=3)(images, labels)
print("mixed", tuple(mixed.shape), round(float(targets.sum()), 4))
print("soft", round(float(SoftTargetCrossEntropy()(torch.zeros(2, 3), targets)), 4))
print("accuracy", [round(float(a), 1) for a in accuracy(torch.eye(3)[labels], labels, topk=(1, 2))])
config = resolve_data_config({}, model=model)
print("config", config["input_size"], config["interpolation"])
print("transform", [type(t).__name__ for t in create_transform(**config).transforms])
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    torch.save(model.state_dict(), file.name)
    again = timm.create_model("resnet10t", num_classes=3, checkpoint_path=file.name).eval()
print("loaded", bool(torch.equal(again(images), model.eval()(images))))
print("here", len(timm.list_models("resnet*")) > 20)
