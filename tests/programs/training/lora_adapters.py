"""LoRA: linear layers replaced by name, the rest frozen, adapters merged, saved by themselves and loaded with strict=False."""

import io
import math
import re
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALayer:
    def __init__(self, r, lora_alpha, lora_dropout, merge_weights):
        self.r = r
        self.lora_alpha = lora_alpha
        self.lora_dropout = nn.Dropout(p=lora_dropout) if lora_dropout > 0.0 else lambda x: x
        self.merged = False
        self.merge_weights = merge_weights


class LoRALinear(nn.Linear, LoRALayer):
    def __init__(self, in_features, out_features, r=0, lora_alpha=1, lora_dropout=0.0, merge_weights=True, **kwargs):
        nn.Linear.__init__(self, in_features, out_features, **kwargs)
        LoRALayer.__init__(self, r=r, lora_alpha=lora_alpha, lora_dropout=lora_dropout, merge_weights=merge_weights)
        if r > 0:
            self.lora_A = nn.Parameter(self.weight.new_zeros((r, in_features)))
            self.lora_B = nn.Parameter(self.weight.new_zeros((out_features, r)))
            self.scaling = self.lora_alpha / self.r
            self.weight.requires_grad = False
        self.reset_parameters()

    def reset_parameters(self):
        nn.Linear.reset_parameters(self)
        if hasattr(self, "lora_A"):
            nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
            nn.init.zeros_(self.lora_B)

    def train(self, mode: bool = True):
        nn.Linear.train(self, mode)
        if mode:
            if self.merge_weights and self.merged:
                self.weight.data -= (self.lora_B @ self.lora_A) * self.scaling
                self.merged = False
        elif self.merge_weights and not self.merged:
            self.weight.data += (self.lora_B @ self.lora_A) * self.scaling
            self.merged = True
        return self

    def forward(self, x):
        if self.r > 0 and not self.merged:
            return (
                F.linear(x, self.weight, bias=self.bias)
                + (self.lora_dropout(x) @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1)) * self.scaling
            )
        return F.linear(x, self.weight, bias=self.bias)


def mark_only_lora_as_trainable(model, bias="none"):
    for n, p in model.named_parameters():
        if "lora_" not in n:
            p.requires_grad = False
    if bias == "lora_only":
        for m in model.modules():
            if isinstance(m, LoRALayer) and hasattr(m, "bias") and m.bias is not None:
                m.bias.requires_grad = True


def lora_state_dict(model):
    sd = model.state_dict()
    return {k: sd[k] for k in sd if "lora_" in k}


def replace(model, pattern, r):
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and re.search(pattern, name):
            parent = model.get_submodule(name.rpartition(".")[0])
            new = LoRALinear(module.in_features, module.out_features, r=r, lora_alpha=2 * r, bias=module.bias is not None)
            missing, unexpected = new.load_state_dict(module.state_dict(), strict=False)
            print(name, "missing", missing, "unexpected", unexpected)
            setattr(parent, name.rpartition(".")[-1], new)
    return model


rng = np.random.RandomState(11)
base = nn.Sequential()
base.add_module("embed", nn.Linear(5, 12))
base.add_module(
    "enc",
    nn.TransformerEncoder(
        nn.TransformerEncoderLayer(12, 3, 24, dropout=0.0, batch_first=True, norm_first=True), 2, enable_nested_tensor=False
    ),
)
base.add_module("head", nn.Linear(12, 2))
for p in base.parameters():
    with torch.no_grad():
        p.set_(torch.tensor(rng.randn(*p.shape) * 0.2, dtype=p.dtype)) if p.dim() > 1 else p.mul_(1)
        if p.dim() == 1 and p.numel() != 12:
            p.zero_()
base.get_submodule("enc.layers.0.linear2").bias.data.zero_()
base.enc.layers[1].linear2.bias.data.zero_()
base.embed.bias.data.zero_()
for layer in base.enc.layers:
    layer.self_attn.out_proj.bias.data.zero_()
X = torch.from_numpy(rng.randn(32, 4, 5)).float()
Y = (X.mean(1)[:, 0] > X.mean(1)[:, 1]).long()
model = replace(base, r"linear\d|head", 2)
mark_only_lora_as_trainable(model, "lora_only")
for n, p in model.named_parameters():
    if n.endswith("lora_A"):
        p.data.copy_(torch.from_numpy(np.random.RandomState(p.shape[1]).randn(*p.shape)))
train, total = sum(p.numel() for p in model.parameters() if p.requires_grad), sum(p.numel() for p in model.parameters())
print(f"trainable params: {train:,} || all params: {total:,} || trainable%: {100 * train / total:.4f}")
print(model)
before = {k: v.clone() for k, v in model.state_dict().items()}
opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=2e-2, weight_decay=0)
for epoch in range(10):
    model.train()
    logits = model(X).mean(dim=1)
    loss = F.cross_entropy(logits, Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            merged = model(X).mean(dim=1)
        print(epoch, f"{loss.item():.4f}", "acc %.3f" % merged.argmax(-1).eq(Y).float().mean().item(), model.head.merged)
model.train()
changed = [k for k, v in model.state_dict().items() if (v - before[k]).abs().max() > 1e-4]
print(changed)
buf = io.BytesIO()
torch.save(lora_state_dict(model), buf)
buf.seek(0)
ad = torch.load(buf, map_location="cpu")
print(len(ad), sorted(ad)[:2], ad["head.lora_B"])
res = model.load_state_dict(ad, strict=False)
print(len(res.missing_keys), res.unexpected_keys)
try:
    model.load_state_dict({"nope": torch.zeros(1), "head.lora_B": torch.zeros(3, 3)})
except RuntimeError as e:
    print(str(e).splitlines()[0][:44], len(str(e).splitlines()), [line.strip()[:22] for line in str(e).splitlines()[1:]])
