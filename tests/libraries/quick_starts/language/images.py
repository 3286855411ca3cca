"""ViT, CLIP and DETR of a few layers: losses of classes, of pairs and of boxes, gradients, a few steps, files."""

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
    return model.eval()  # without dropout, whose draws are no library's but one's own


def image(size):
    return torch.tensor(np.random.RandomState(1).standard_normal((2, 3, size, size)), dtype=torch.float32)


LAYERS = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
vit = transformers.ViTForImageClassification(transformers.ViTConfig(**LAYERS, image_size=16, patch_size=4, num_labels=5))
words = {**LAYERS, "vocab_size": 60, "max_position_embeddings": 20, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}
clip = transformers.CLIPModel(
    transformers.CLIPConfig(text_config=words, vision_config={**LAYERS, "image_size": 16, "patch_size": 4}, projection_dim=12)
)
stem = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], out_features=["stage4"])
parts = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 24))}
detr = transformers.DetrForObjectDetection(
    transformers.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=stem,
        d_model=16,
        num_queries=6,
        num_labels=4,
        **parts,
    )
)
boxes = [
    {"class_labels": torch.tensor([1, 2]), "boxes": torch.tensor([[0.5, 0.5, 0.2, 0.3], [0.3, 0.6, 0.4, 0.2]])},
    {"class_labels": torch.tensor([0]), "boxes": torch.tensor([[0.4, 0.4, 0.3, 0.3]])},
]
ids = torch.tensor(np.random.RandomState(0).randint(3, 60, (2, 9)))
for name, model, given in (
    ("ViT", vit, {"pixel_values": image(16), "labels": torch.tensor([1, 3])}),
    ("CLIP", clip, {"input_ids": ids, "pixel_values": image(16), "return_loss": True}),
    ("DETR", detr, {"pixel_values": image(32), "labels": boxes}),
):
    fill(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    for _ in range(3):
        out = model(**given)
        out.loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(name, "loss", round(float(out.loss), 4), "norm", round(float(norm), 4))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = type(model).from_pretrained(folder).eval()
        with torch.no_grad():
            print(name, "loaded is saved", torch.equal(loaded(**given).loss, model(**given).loss))
with torch.no_grad():
    pairs = clip(input_ids=ids, pixel_values=image(16)).logits_per_image
    print("CLIP pairs", [round(x, 3) for x in pairs.flatten().tolist()])
    found = detr(pixel_values=image(32))
    print("DETR boxes", round(float(found.pred_boxes.sum()), 4), [round(v, 3) for v in found.logits[0, 0].tolist()])
