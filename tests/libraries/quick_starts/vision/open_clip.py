"""open_clip: a small model of a config, images and texts compared, a contrastive step, saving and loading."""

import tempfile

import numpy as np
import open_clip
import torch
from open_clip import CLIP, ClipLoss, SimpleTokenizer
from open_clip.transform import image_transform
from PIL import Image

torch.manual_seed(0)
rng = np.random.default_rng(0)
model = CLIP(
    embed_dim=16, vision_cfg={"image_size": 32, "patch_size": 8, "width": 32, "layers": 2, "head_width": 8},
    text_cfg={"context_length": 12, "vocab_size": 49408, "width": 24, "heads": 2, "layers": 2},
)  # fmt: skip
with torch.no_grad():
    for _, p in sorted(model.named_parameters()):
        p.copy_(torch.from_numpy(np.asarray(0.1 * rng.standard_normal(p.shape), np.float32)))
    model.logit_scale.fill_(2.0)
images = torch.from_numpy(rng.random((3, 3, 32, 32)).astype(np.float32))
texts = SimpleTokenizer(context_length=12)(["a photo of a cat", "two dogs in the snow", "a diagram"])
print("tokens", texts[0, :7].tolist(), tuple(texts.shape))
model.eval()
seen, read = model.encode_image(images, normalize=True), model.encode_text(texts, normalize=True)
print("seen", [round(float(v), 4) for v in seen[0, :4]])
print("read", [round(float(v), 4) for v in read[0, :4]])
print("probabilities", [round(float(v), 4) for v in (model.logit_scale.exp() * seen @ read.T).softmax(-1)[0]])
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for _ in range(3):
    optimizer.zero_grad()
    a, b, scale = model(images, texts)
    loss = ClipLoss()(a, b, scale)
    loss.backward()
    optimizer.step()
    losses.append(round(float(loss), 3))
print("losses", losses)
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    torch.save(model.state_dict(), file.name)
    print("loaded", str(model.load_state_dict(torch.load(file.name))))
prepared = image_transform(32, is_train=False)(Image.fromarray(rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)))
print("prepared", tuple(prepared.shape), round(float(prepared.mean()), 3))
print("known", "ViT-B-32" in open_clip.list_models())
