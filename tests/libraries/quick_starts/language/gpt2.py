"""GPT-2 of two layers: learned for a few steps, text made in every way that generate() has, saved and loaded."""

import tempfile
import zlib

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

torch.manual_seed(0)


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model.eval()  # without dropout, whose draws are no library's but one's own


config = GPT2Config(vocab_size=60, n_positions=64, n_embd=16, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=0)
ids = torch.tensor(np.random.RandomState(0).randint(3, 60, (2, 9)))
model = fill(GPT2LMHeadModel(config))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)
for step in range(4):
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()
    print("step", step, round(float(out.loss), 4))

prompt = ids[:1, :5]
plain = {"max_new_tokens": 8, "do_sample": False}
print("greedy", model.generate(prompt, **plain).tolist())
print("without cache", model.generate(prompt, use_cache=False, **plain).tolist())
print("static cache", model.generate(prompt, cache_implementation="static", **plain).tolist())
print("beams", model.generate(prompt, num_beams=4, num_return_sequences=2, length_penalty=0.6, no_repeat_ngram_size=2, **plain).tolist())
print("penalty", model.generate(prompt, repetition_penalty=1.4, min_new_tokens=4, bad_words_ids=[[7]], **plain).tolist())
print("assisted", model.generate(prompt, assistant_model=fill(GPT2LMHeadModel(config)), **plain).tolist())
print("from the prompt", model.generate(prompt, prompt_lookup_num_tokens=3, **plain).tolist())
scored = model.generate(prompt, output_scores=True, return_dict_in_generate=True, **plain)
print("scores", [round(float(s.max()), 3) for s in scored.scores])


class Only(LogitsProcessor):
    """Leaves the tokens below 30."""

    def __call__(self, input_ids, scores):
        return scores.masked_fill(torch.arange(scores.shape[-1]) >= 30, -float("inf"))


class Enough(StoppingCriteria):
    """Stops at 10 tokens."""

    def __call__(self, input_ids, scores, **kwargs):
        return torch.full((input_ids.shape[0],), input_ids.shape[1] >= 10)


own = {"logits_processor": LogitsProcessorList([Only()]), "stopping_criteria": StoppingCriteriaList([Enough()])}
print("own rules", model.generate(prompt, **own, **plain).tolist())
torch.manual_seed(3)
drawn = model.generate(prompt, do_sample=True, temperature=0.9, top_k=20, top_p=0.9, max_new_tokens=8, num_return_sequences=4)
torch.manual_seed(3)
again = model.generate(prompt, do_sample=True, temperature=0.9, top_k=20, top_p=0.9, max_new_tokens=8, num_return_sequences=4)
print(
    "drawn", drawn.shape[0], drawn.shape[1] <= 13, bool((drawn[:, :5] == prompt).all()), "same seed, same text", torch.equal(drawn, again)
)

left = torch.tensor([[0, 0, 0, *prompt[0].tolist()]])
print(
    "padded",
    model.generate(left, attention_mask=(left != 0).long(), **plain)[:, 8:].tolist() == model.generate(prompt, **plain)[:, 5:].tolist(),
)

with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = GPT2LMHeadModel.from_pretrained(folder)
    half = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.bfloat16)
print("loaded", torch.equal(loaded.generate(prompt, **plain), model.generate(prompt, **plain)), str(half.dtype).rpartition(".")[2])
