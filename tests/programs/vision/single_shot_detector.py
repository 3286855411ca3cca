"""A single-shot detector of rectangles: anchors, matching by overlap, hard negatives, boxes encoded and decoded, suppression by hand."""

import argparse
import math
from collections import OrderedDict, defaultdict
from typing import Dict, List, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset


def init_weights(m):
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        rs = np.random.RandomState(m.weight.numel() % 1000)
        with torch.no_grad():
            m.weight.copy_(torch.from_numpy(rs.randn(*m.weight.shape) * 0.1))
            if m.bias is not None:
                nn.init.zeros_(m.bias)


class Shapes(Dataset):
    def __init__(self, n=24, size=32, seed=0):
        self.rs = np.random.RandomState(seed)
        self.items = []
        for _ in range(n):
            img = self.rs.rand(1, size, size).astype("float32") * 0.1
            boxes, labels = [], []
            for _ in range(self.rs.randint(1, 3)):
                x, y = self.rs.randint(0, size - 12, 2)
                w, h = self.rs.randint(6, 12, 2)
                c = self.rs.randint(1, 3)
                img[0, y : y + h, x : x + w] = c / 2
                boxes.append([x, y, x + w, y + h])
                labels.append(c)
            self.items.append((img, boxes, labels))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, boxes, labels = self.items[i]
        return torch.from_numpy(img), {
            "boxes": torch.as_tensor(boxes, dtype=torch.float32),
            "labels": torch.as_tensor(labels, dtype=torch.int64),
        }


def collate(batch):
    return torch.stack([b[0] for b in batch], 0), [b[1] for b in batch]


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    area = lambda z: (z[:, 2] - z[:, 0]).clamp(min=0) * (z[:, 3] - z[:, 1]).clamp(min=0)
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    inter = (rb - lt).clamp_(min=0).prod(-1)
    return inter / (area(a)[:, None] + area(b) - inter)


def nms(boxes, scores, thr=0.5):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i.item())
        if order.numel() == 1:
            break
        iou = box_iou(boxes[i].unsqueeze(0), boxes[order[1:]]).squeeze(0)
        order = order[1:][iou <= thr]
    return torch.tensor(keep, dtype=torch.long)


class SSD(nn.Module):
    def __init__(self, classes=3, sizes=(8.0, 12.0)):
        super().__init__()
        self.backbone = nn.Sequential(
            OrderedDict(
                [
                    ("conv1", nn.Conv2d(1, 8, 3, 2, 1, bias=False)),
                    ("bn1", nn.BatchNorm2d(8)),
                    ("relu1", nn.ReLU(inplace=True)),
                    ("conv2", nn.Conv2d(8, 16, 3, 2, 1)),
                    ("gn", nn.GroupNorm(4, 16)),
                    ("act", nn.Hardswish(inplace=True)),
                ]
            )
        )
        self.heads = nn.ModuleDict({"cls": nn.Conv2d(16, 2 * classes, 3, padding=1), "box": nn.Conv2d(16, 2 * 4, 3, padding=1)})
        self.classes = classes
        ys, xs = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
        c = torch.stack([xs, ys, xs, ys], -1).float().mul(4).add(2)
        half = torch.tensor([[-s / 2, -s / 2, s / 2, s / 2] for s in sizes])
        self.register_buffer("anchors", (c.view(-1, 1, 4) + half).reshape(-1, 4), persistent=False)

    def forward(self, x) -> Dict[str, Tensor]:
        f = self.backbone(x)
        n = x.shape[0]
        out = {k: h(f).permute(0, 2, 3, 1).contiguous().view(n, -1, self.classes if k == "cls" else 4) for k, h in self.heads.items()}
        return out


def encode(anchors, gt):
    awh = anchors[:, 2:] - anchors[:, :2]
    ac = anchors[:, :2] + awh / 2
    gwh = gt[:, 2:] - gt[:, :2]
    gc = gt[:, :2] + gwh / 2
    return torch.cat([(gc - ac) / awh, torch.log(gwh / awh)], dim=1)


def decode(anchors, d):
    awh = anchors[:, 2:] - anchors[:, :2]
    c = anchors[:, :2] + awh / 2 + d[:, :2] * awh
    wh = d[:, 2:].clamp(max=math.log(4)).exp() * awh
    return torch.cat((c - wh / 2, c + wh / 2), -1)


def criterion(out, targets, anchors):
    total = defaultdict(float)
    for cls, box, t in zip(out["cls"], out["box"], targets):
        iou = box_iou(anchors, t["boxes"])
        best, idx = iou.max(dim=1)
        labels = torch.where(best > 0.4, t["labels"][idx], torch.zeros_like(idx))
        labels[iou.argmax(0)] = t["labels"]
        pos = labels > 0
        ce = F.cross_entropy(cls, labels, reduction="none")
        neg, _ = ce[~pos].topk(int(min(3 * pos.sum(), (~pos).sum())))
        total["cls"] += (ce[pos].sum() + neg.sum()) / pos.sum()
        total["box"] += F.smooth_l1_loss(box[pos], encode(anchors[pos], t["boxes"][idx[pos]]), beta=1 / 9)
    return {k: v / len(targets) for k, v in total.items()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args([])
    device = torch.device("cpu")
    model = SSD().to(device)
    model.apply(init_weights)
    print(model)
    print(model.anchors.shape, list(model.state_dict().keys())[:4], len(list(model.buffers())))
    decay = [q for n, q in model.named_parameters() if q.ndim > 1]
    rest = [q for n, q in model.named_parameters() if q.ndim <= 1]
    opt = torch.optim.SGD(
        [{"params": decay, "weight_decay": 1e-4}, {"params": rest, "weight_decay": 0.0}], lr=args.lr, momentum=0.9, nesterov=True
    )
    print(opt)
    loader = DataLoader(Shapes(), batch_size=8, collate_fn=collate, drop_last=True)
    for epoch in range(args.epochs):
        model.train()
        for imgs, targets in loader:
            imgs = imgs.to(device, non_blocking=True)
            losses = criterion(model(imgs), targets, model.anchors)
            loss = sum(losses.values())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
        print(f"epoch {epoch} " + " ".join(f"{k} {v:.4f}" for k, v in losses.items()) + f" norm {norm:.3f}", loss)
    model.eval()
    with torch.inference_mode():
        imgs, targets = next(iter(loader))
        out = model(imgs)
        scores, labels = out["cls"].softmax(-1)[..., 1:].max(-1)
        for i in range(2):
            boxes = decode(model.anchors, out["box"][i])
            top = scores[i].topk(20).indices
            keep = top[nms(boxes[top], scores[i][top], 0.3)]
            print(len(keep), scores[i][keep[:3]], boxes[keep[0]].round())


if __name__ == "__main__":
    main()
