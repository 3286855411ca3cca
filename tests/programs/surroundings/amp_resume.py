"""A mixed precision loop with accumulation, clipping, early stopping, an EMA, checkpoints, and going on from one."""

import copy
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.amp import GradScaler, autocast
from torch.optim.swa_utils import AveragedModel, SWALR, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm, trange


def fill(model, seed=0):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            fan = p[0].numel() if p.dim() > 1 else p.numel()
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) / np.sqrt(fan)))
    return model


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0, path="best.pt"):
        self.patience, self.delta, self.path = patience, delta, path
        self.best, self.count, self.early_stop = None, 0, False

    def __call__(self, loss, model):
        if self.best is None or loss < self.best - self.delta:
            self.best, self.count = loss, 0
            torch.save(model.state_dict(), self.path)
        else:
            self.count += 1
            self.early_stop = self.count >= self.patience


class AverageMeter(object):
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


def seed_everything(seed):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)


seed_everything(3)
device = "cpu"
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((96, 6)), dtype=torch.float32)
y = (x[:, :1] * x[:, 1:2] > 0).long().squeeze(1)
loader = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=8, pin_memory=False)
valid = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=32)
where = tempfile.mkdtemp()


def build():
    model = fill(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)))
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        (no_decay if p.ndim <= 1 or name.endswith(".bias") else decay).append(p)
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}], lr=5e-3, betas=(0.9, 0.95)
    )
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=2)
    main = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, main], milestones=[2])
    scaler = GradScaler(device, enabled=device == "cuda")
    return model, ema, optimizer, scheduler, scaler


def epoch(model, ema, optimizer, scheduler, scaler, accumulate=2):
    model.train()
    meter = AverageMeter("Loss", ":.4f")
    optimizer.zero_grad(set_to_none=True)
    for i, (a, b) in enumerate(tqdm(loader, disable=True)):
        a, b = a.to(device, non_blocking=True), b.to(device, non_blocking=True)
        with autocast(device_type=device, dtype=torch.bfloat16):
            out = model(a)
            loss = nn.functional.cross_entropy(out, b, label_smoothing=0.1) / accumulate
        scaler.scale(loss).backward()
        if (i + 1) % accumulate == 0:
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            ema.update_parameters(model)
        meter.update(loss.item() * accumulate, a.size(0))
    scheduler.step()
    return meter, norm, out.dtype


@torch.inference_mode()
def validate(model):
    model.eval()
    return sum(nn.functional.cross_entropy(model(a), b, reduction="sum").item() for a, b in valid) / 32


parts = build()
stopper = EarlyStopping(path=os.path.join(where, "best.pt"))
for e in trange(3, disable=True):
    meter, norm, dtype = epoch(*parts)
    loss = validate(parts[1])
    stopper(loss, parts[0])
    print(e, meter, f"norm {norm:.2f}", dtype, f"valid {loss:.3f}", [f"{lr:.5f}" for lr in parts[3].get_last_lr()])
model, ema, optimizer, scheduler, scaler = parts
torch.save(
    {
        "model": model.state_dict(),
        "ema": ema.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "epoch": e,
        "numpy": np.random.get_state()[1][:3].tolist(),
        "python": random.getstate()[0],
        "torch": torch.get_rng_state(),
        "best": stopper.best,
    },
    os.path.join(where, "last.pt"),
)
ongoing = [epoch(*parts)[0].avg for _ in range(2)]
state = torch.load(os.path.join(where, "last.pt"), map_location=device, weights_only=True)
print(sorted(state), int(state["ema"]["n_averaged"]), list(state["ema"])[:2])
parts = build()
for part, key in zip(parts, ("model", "ema", "optimizer", "scheduler", "scaler")):
    part.load_state_dict(state[key])
torch.set_rng_state(state["torch"])
print("resumes:", np.allclose([epoch(*parts)[0].avg for _ in range(2)], ongoing, atol=1e-6), stopper.count)
update_bn(loader, parts[1])
print(f"{validate(parts[1]):.3f}")
best = build()[0]
best.load_state_dict(torch.load(stopper.path))
print(
    f"{validate(best):.3f}",
    len(state["optimizer"]["param_groups"]),
    state["optimizer"]["param_groups"][0]["params"],
    sorted(state["optimizer"]["state"][0]),
)
swa = AveragedModel(best)
opt = torch.optim.SGD(best.parameters(), lr=0.1)
swa_scheduler = SWALR(opt, swa_lr=0.05, anneal_epochs=3)
for _ in range(4):
    for a, b in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(best(a), b).backward()
        opt.step()
    swa.update_parameters(best)
    swa_scheduler.step()
    print(f"{opt.param_groups[0]['lr']:.4f}", end=" ")
print(int(swa.n_averaged))
