"""BERT of two layers: masked words and classes of sentences, learned for a few steps, saved and loaded."""

import tempfile
import zlib

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

torch.manual_seed(0)


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model.eval()  # without dropout, whose draws are no library's but one's own


config = BertConfig(
    vocab_size=60,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=24,
    max_position_embeddings=32,
    num_labels=3,
)
ids = torch.tensor(np.random.RandomState(0).randint(3, 60, (2, 9)))
seen = torch.tensor([[1] * 9, [1] * 6 + [0] * 3])

model = fill(BertForMaskedLM(config))
labels = ids.where((torch.arange(18).view(2, 9) % 4 == 0) & (seen == 1), -100)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    out = model(input_ids=ids, attention_mask=seen, labels=labels)
    out.loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("masked", step, round(float(out.loss), 4), round(float(norm), 4))

classifier = fill(BertForSequenceClassification(config))
out = classifier(input_ids=ids, attention_mask=seen, labels=torch.tensor([0, 2]))
out.loss.backward()
print("classes", round(float(out.loss), 4), [round(x, 3) for x in out.logits.flatten().tolist()])
print("gradient", round(float(sum(p.grad.abs().sum() for p in classifier.parameters() if p.grad is not None)), 3))

for attention in ("eager", "sdpa"):
    encoder = fill(BertModel(config)).eval()
    encoder.set_attn_implementation(attention)
    with torch.no_grad():
        hidden = encoder(ids, attention_mask=seen, output_hidden_states=True)
    print(attention, round(float(hidden.pooler_output.sum()), 4), [round(float(h.abs().mean()), 4) for h in hidden.hidden_states])

with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = BertForMaskedLM.from_pretrained(folder).eval()
    with torch.no_grad():
        same = torch.equal(again(ids, attention_mask=seen).logits, model(ids, attention_mask=seen).logits)
print("loaded is saved", same, "tied", again.cls.predictions.decoder.weight is again.bert.embeddings.word_embeddings.weight)
