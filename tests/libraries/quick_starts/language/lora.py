"""peft: LoRA and its kin on a small GPT-2: which parameters learn, a few steps, merging, files, two adapters."""

import tempfile
import zlib

import numpy as np
import torch
from peft import IA3Config, LoHaConfig, LoraConfig, PeftModel, PrefixTuningConfig, PromptTuningConfig, VeraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model.eval()  # without dropout, whose draws are no library's but one's own


config = GPT2Config(vocab_size=60, n_positions=32, n_embd=16, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2)
ids = torch.tensor(np.random.RandomState(0).randint(3, 60, (2, 9)))
KINDS = {
    "LoRA": LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], task_type="CAUSAL_LM"),
    "DoRA": LoraConfig(r=4, use_dora=True, target_modules=["c_attn"], task_type="CAUSAL_LM"),
    "rsLoRA": LoraConfig(r=4, use_rslora=True, target_modules="all-linear", modules_to_save=["wte"], task_type="CAUSAL_LM"),
    "IA3": IA3Config(target_modules=["c_attn", "c_fc"], feedforward_modules=["c_fc"], task_type="CAUSAL_LM"),
    "Prompt": PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
    "Prefix": PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
}
for kind, adapter in KINDS.items():
    model = fill(get_peft_model(GPT2LMHeadModel(config), adapter))
    learns, total = model.get_nb_trainable_parameters()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(float(loss), 4))
    print(kind, "learns", learns, "of", total, losses)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        loaded = PeftModel.from_pretrained(fill(GPT2LMHeadModel(config)), folder).eval()
        base = {n.replace(".base_layer", ""): p for n, p in model.base_model.named_parameters()}
        print(kind, "files", len(base) > 0, "adapter loaded", sorted(loaded.peft_config) == ["default"])
    if kind == "LoRA":
        with torch.no_grad():
            before = model(ids).logits
            with model.disable_adapter():
                print("without", round(float((model(ids).logits - before).abs().mean()), 4))
            model.add_adapter("second", LoraConfig(r=2, target_modules=["c_attn"], init_lora_weights=False))
            model.set_adapter("second")
            print("second differs", not torch.allclose(model(ids).logits, before))
            model.set_adapter("default")
            merged = model.merge_and_unload()
            print("merged", type(merged).__name__, torch.allclose(merged(ids).logits, before, atol=1e-5))
            print("greedy", merged.generate(ids[:1, :4], max_new_tokens=6, do_sample=False, pad_token_id=0).tolist())
linear = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
x = torch.tensor(np.random.RandomState(1).standard_normal((3, 8)), dtype=torch.float32)
for adapter in (LoHaConfig(r=2, target_modules=["0"]), VeraConfig(r=2, target_modules=["0", "2"], save_projection=True)):
    plain = fill(get_peft_model(torch.nn.Sequential(*linear), adapter))
    y = plain(x)
    y.square().mean().backward()
    print(
        type(adapter).__name__,
        plain.get_nb_trainable_parameters(),
        tuple(y.shape),
        all(p.grad is not None for p in plain.parameters() if p.requires_grad),
    )
