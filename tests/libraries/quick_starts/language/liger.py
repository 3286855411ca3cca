"""liger-kernel: Triton kernels of losses, softmax and turned positions, run by Triton's interpreter, and a Llama that is patched with them."""

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: no GPU is needed

import zlib

import numpy as np
import torch
from liger_kernel.ops import LigerJSDFunction, LigerRopeFunction, LigerSoftmaxFunction
from liger_kernel.transformers import LigerCrossEntropyLoss, LigerFusedLinearCrossEntropyLoss, apply_liger_kernel_to_llama
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"  # where kernels are run: PyTorch's interpreter takes tensors on the CPU


def draw(*shape, seed):
    return torch.tensor(np.random.RandomState(seed).standard_normal(shape), dtype=torch.float32, device=device, requires_grad=True)


def show(name, value, *leaves):
    value.backward()
    print(name, round(float(value.detach()), 4), [round(float(x.grad.abs().sum()), 4) for x in leaves])


target = torch.tensor([1, 2, 3, -100, 5, 9], device=device)
x, w = draw(6, 8, seed=0), draw(10, 8, seed=1)
show("cross entropy", LigerCrossEntropyLoss(label_smoothing=0.1, lse_square_scale=1e-3)(x @ w.T, target), x, w)
x, w = draw(6, 8, seed=0), draw(10, 8, seed=1)
show("fused with the layer before", LigerFusedLinearCrossEntropyLoss()(w, x, target), x, w)
x = draw(6, 8, seed=2)
show("softmax", (LigerSoftmaxFunction.apply(x) * draw(6, 8, seed=3).detach()).sum(), x)
x = draw(6, 8, seed=4)
show("divergence", LigerJSDFunction.apply(x.log_softmax(-1), draw(6, 8, seed=5).log_softmax(-1).detach()), x)
q, k, cos, sin = (draw(*s, seed=6 + i) for i, s in enumerate(((1, 2, 4, 8), (1, 2, 4, 8), (1, 4, 8), (1, 4, 8))))
turned = LigerRopeFunction.apply(q * 1.0, k * 1.0, cos.detach(), sin.detach())
show("positions", turned[0].square().sum() + turned[1].sum(), q, k)

apply_liger_kernel_to_llama(rope=True, cross_entropy=True, fused_linear_cross_entropy=False, rms_norm=False, swiglu=False)
config = LlamaConfig(
    vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, max_position_embeddings=16
)
model = LlamaForCausalLM(config).to(device)
with torch.no_grad():
    for name, p in model.named_parameters():
        numbers = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
        p.copy_(torch.tensor(numbers + (p.ndim == 1), dtype=p.dtype))
ids = torch.tensor(np.random.RandomState(0).randint(3, 30, (2, 7)), device=device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("Llama", step, round(float(loss.detach()), 4))
