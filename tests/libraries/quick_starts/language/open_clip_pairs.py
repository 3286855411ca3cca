"""open_clip: a small CLIP from its configuration: losses of pairs, gradients, a few steps, classes without examples, files."""

import tempfile
import zlib

import numpy as np
import open_clip
import torch
from open_clip.model import CLIP

torch.manual_seed(0)


def fill(model):
    """Weights that depend on the parameters' names alone."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(p.shape)) * 0.08
            p.copy_(torch.tensor(draw + (p.ndim == 1 and name.endswith("weight")), dtype=p.dtype))
    return model


sizes = {
    "embed_dim": 16, "vision_cfg": {"image_size": 16, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 12, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}  # fmt: skip
model = fill(CLIP(**sizes))
words = open_clip.get_tokenizer("ViT-B-32")(["a cat", "a big dog", "the hill"], context_length=12)
pictures = torch.tensor(np.random.RandomState(1).standard_normal((3, 3, 16, 16)), dtype=torch.float32)
loss_of = open_clip.ClipLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
print("words", words[:, :5].tolist())
for step in range(3):
    image, text, scale = model(pictures, words)
    loss = loss_of(image, text, scale)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, round(float(loss), 4), round(float(norm), 3))
model.eval()
with torch.no_grad():
    likely = (model.encode_image(pictures, normalize=True) @ model.encode_text(words, normalize=True).T * 10).softmax(-1)
    print("classes", [round(v, 3) for v in likely.flatten().tolist()])
with tempfile.TemporaryDirectory() as folder:
    torch.save(model.state_dict(), f"{folder}/clip.pt")
    again = CLIP(**sizes).eval()
    open_clip.load_checkpoint(again, f"{folder}/clip.pt")
    with torch.no_grad():
        print("loaded is saved", torch.equal(again.encode_text(words), model.encode_text(words)))
print("known", "ViT-B-32" in open_clip.list_models(), len(open_clip.list_openai_models()) > 3)
