"""Llama, Qwen, Mistral, Mixtral, Gemma and Mamba of two layers: losses, gradients, a few steps, text, files."""

import tempfile
import zlib

import numpy as np
import torch
import transformers

torch.manual_seed(0)
transformers.logging.set_verbosity_error()


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model


WORDS = {"vocab_size": 60, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIZES = {
    **WORDS, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24,
    "max_position_embeddings": 64,
}  # fmt: skip
KINDS = {
    "Llama": SIZES,
    "Qwen2": SIZES,
    "Qwen3": {**SIZES, "head_dim": 8},
    "Mistral": {**SIZES, "sliding_window": 5},
    "Mixtral": {**SIZES, "num_local_experts": 4, "output_router_logits": True},
    "Gemma": {**SIZES, "head_dim": 8},
    "Gemma2": {**SIZES, "head_dim": 8, "sliding_window": 4},
    "Mamba": {**WORDS, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2},
}
ids = torch.tensor(np.random.RandomState(0).randint(3, 60, (2, 12)))
for kind, sizes in KINDS.items():
    model_class = getattr(transformers, f"{kind}ForCausalLM")
    model = fill(model_class(getattr(transformers, f"{kind}Config")(**sizes))).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(2):
        out = model(input_ids=ids, labels=ids)
        out.loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        optimizer.step()
        optimizer.zero_grad()
        print(kind, "loss", round(float(out.loss), 4), "norm", round(float(norm), 4), "logits", round(float(out.logits.abs().mean()), 4))
    model.eval()
    plain = {"max_new_tokens": 6, "do_sample": False}
    print(kind, "greedy", model.generate(ids[:1, :7], **plain).tolist())
    print(kind, "beams", model.generate(ids[:1, :7], num_beams=3, **plain).tolist())
    if kind != "Mamba":
        print(kind, "static cache", model.generate(ids[:1, :7], cache_implementation="static", **plain).tolist())
        seen = torch.ones_like(ids)
        seen[0, :4] = 0
        with torch.no_grad():
            print(kind, "padded", round(float(model(input_ids=ids, attention_mask=seen).logits[0, -1].sum()), 4))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = model_class.from_pretrained(folder).eval()
        with torch.no_grad():
            print(kind, "loaded is saved", torch.equal(loaded(ids).logits, model(ids).logits))
