"""Models without memory: accelerate builds a small GPT-2 on device meta and loads a checkpoint into it, transformers reads it back and goes on training."""

import os
import tempfile

import numpy as np
import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.utils import compute_module_sizes
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
numbers = np.random.default_rng(0)
config = GPT2Config(n_layer=2, n_head=2, n_embd=16, n_positions=32, vocab_size=50, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)

model = GPT2LMHeadModel(config).eval()
with torch.no_grad():
    for _, p in sorted(model.named_parameters()):
        p.copy_(torch.from_numpy((0.1 * numbers.standard_normal(tuple(p.shape))).astype(np.float32)))
tokens = torch.from_numpy(numbers.integers(0, 50, (2, 12)))
expected = model(tokens, labels=tokens)
print("loss", round(float(expected.loss), 4))

# A model without memory: shapes and types are known, and nothing else.
with init_empty_weights():
    empty = GPT2LMHeadModel(config)
empty.tie_weights()
print("devices", sorted({p.device.type for p in empty.parameters()}))
print("parameters", sum(p.numel() for p in empty.parameters()), "bytes", compute_module_sizes(empty)[""])
with torch.device("meta"):
    large = GPT2LMHeadModel(GPT2Config(n_layer=48, n_head=25, n_embd=1600))
print("xl", sum(p.numel() for p in large.parameters()), large.transformer.h[47].mlp.c_fc.weight.is_meta)
out = empty(torch.zeros(2, 12, dtype=torch.int64, device="meta"))
print("logits", tuple(out.logits.shape), out.logits.device.type)
try:
    out.logits.sum().item()
except RuntimeError as error:
    print("item refused", "meta" in str(error))

with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    print("files", sorted(f for f in os.listdir(folder) if f.endswith(".safetensors")))
    filled = load_checkpoint_and_dispatch(empty, folder, device_map={"": "cpu"}).eval()
    again = GPT2LMHeadModel.from_pretrained(folder).eval()
for name, other in (("dispatched", filled), ("from_pretrained", again)):
    print(name, bool(torch.allclose(other(tokens).logits, expected.logits, atol=1e-5)), sorted({p.device.type for p in other.parameters()}))
print("tied", again.lm_head.weight is again.transformer.wte.weight)

accelerator = Accelerator(cpu=True)
again, optimizer = accelerator.prepare(again.train(), torch.optim.SGD(again.parameters(), lr=0.1))
for _ in range(3):
    optimizer.zero_grad()
    loss = again(tokens, labels=tokens).loss
    accelerator.backward(loss)
    optimizer.step()
    print("step", round(float(loss.detach()), 4))
print("greedy", again.eval().generate(tokens[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0).tolist())
