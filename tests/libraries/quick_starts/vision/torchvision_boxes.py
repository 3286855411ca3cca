"""torchvision's transforms of samples: a detector's images, boxes, masks and points augmented together, and a small network trained on them."""

import numpy as np
import torch
from torch import nn
from torchvision import ops, tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

torch.manual_seed(0)
rng = np.random.default_rng(0)
SIZE = (48, 64)


def make_sample():
    """An image with two bright rectangles, their boxes, masks and middles."""
    pixels = rng.integers(0, 60, (3, *SIZE), dtype=np.uint8)
    masks, boxes = np.zeros((2, *SIZE), np.uint8), []
    for mask in masks:
        left, top = rng.integers(2, 40), rng.integers(2, 28)
        width, height = rng.integers(8, 20), rng.integers(8, 16)
        mask[top : top + height, left : left + width] = 1
        pixels[:, mask > 0] = rng.integers(150, 250, (3, 1))
        boxes.append([left, top, width, height])
    boxes = tv_tensors.BoundingBoxes(np.array(boxes, np.float32), format="XYWH", canvas_size=SIZE)
    middles = F.convert_bounding_box_format(boxes, new_format="CXCYWH").as_subclass(torch.Tensor)[:, :2]
    target = {
        "boxes": boxes, "masks": tv_tensors.Mask(masks), "labels": torch.tensor([1, 2]), "points": tv_tensors.KeyPoints(middles, canvas_size=SIZE),
    }  # fmt: skip
    return tv_tensors.Image(torch.from_numpy(pixels)), target


def show(name, image, target):
    image = F.pil_to_tensor(image) if not isinstance(image, torch.Tensor) else image
    print(name, type(image).__name__, tuple(image.shape), target["boxes"].canvas_size, round(float(image.double().mean()), 3))
    print(name, "boxes", target["boxes"].format.name, [round(float(v), 3) for v in target["boxes"].flatten()])
    print(name, "masks", tuple(target["masks"].shape), int(target["masks"].sum()), target["labels"].tolist())
    print(name, "points", [round(float(v), 3) for v in target["points"].flatten()])


image, target = make_sample()
show("given", image, target)
# What is drawn differs from library to library: these draw nothing, or one value alone.
for name, transform in {
    "flip": v2.RandomHorizontalFlip(p=1), "down": v2.RandomVerticalFlip(p=1), "resize": v2.Resize((30, 50)), "shorter": v2.Resize(40, max_size=50),
    "pad": v2.Pad([3, 5], fill={tv_tensors.Image: 7, "others": 0}), "crop": v2.CenterCrop((36, 70)), "turn": v2.RandomRotation((25, 25)),
    "affine": v2.RandomAffine((10, 10), scale=(1.2, 1.2), shear=(5, 5), interpolation="bilinear"), "jitter": v2.ScaleJitter((64, 64), (0.5, 0.5)),
    "shortest": v2.RandomShortestSize(32), "format": v2.ConvertBoundingBoxFormat("CXCYWH"), "identity": v2.Identity(),
}.items():  # fmt: skip
    show(name, *transform(image, target))
show("pillow", *v2.Resize(24)(F.to_pil_image(image), target))
turned = tv_tensors.BoundingBoxes([[20.0, 20, 16, 8, 30]], format="CXCYWHR", canvas_size=SIZE)
for made in (
    F.rotate(turned, 15),
    F.horizontal_flip(turned),
    F.crop(turned, 4, 6, 30, 40),
    F.convert_bounding_box_format(turned, new_format="XYXYXYXY"),
):
    print("turned", made.format.name, [round(float(v), 3) for v in made.flatten()], made.canvas_size)
warped = F.perspective(target["boxes"], [[0, 0], [63, 0], [63, 47], [0, 47]], [[4, 2], [60, 5], [58, 44], [3, 45]])
print("perspective", [round(float(v), 3) for v in warped.flatten()])
valid = v2.Compose([v2.CenterCrop(20), v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes(min_size=3)])(image, target)[1]
print("valid", valid["boxes"].shape[0] == valid["labels"].shape[0] == valid["masks"].shape[0], type(valid["boxes"]).__name__)
print("kept", type(image + 1).__name__, type(image.clone()).__name__, type(tv_tensors.wrap(image + 1, like=image)).__name__)
with tv_tensors.set_return_type("TVTensor"):
    print("class", type(image + 1).__name__, (target["boxes"] * 2).format.name)

augment = v2.Compose(
    [
        v2.RandomPhotometricDistort(), v2.RandomZoomOut(side_range=(1.0, 1.5)), v2.RandomIoUCrop(), v2.RandomHorizontalFlip(), v2.Resize(SIZE),
        v2.ConvertBoundingBoxFormat("XYXY"), v2.SanitizeBoundingBoxes(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
        v2.ToPureTensor(),
    ]
)  # fmt: skip
plain = v2.Compose([v2.ConvertBoundingBoxFormat("XYXY"), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()])
samples = [make_sample() for _ in range(8)]
augmented = [augment(i, t) for s in samples for i, t in [s] * 4]
print("augmented", all(i.shape == (3, *SIZE) and i.dtype is torch.float32 for i, _ in augmented), type(augmented[0][1]["boxes"]).__name__)
print("inside", all(bool((t["boxes"] >= 0).all() and (t["boxes"] <= torch.tensor([64, 48, 64, 48])).all()) for _, t in augmented))


class Detector(nn.Module):
    """Middle, width and height of the box around all that is bright, from a few convolutions."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, 4, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 8, 4)
        )

    def forward(self, x):
        return self.body(x).sigmoid() * x.new_tensor([64.0, 48, 64, 48])


model = Detector()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.from_numpy((0.1 * rng.standard_normal(tuple(p.shape))).astype(np.float32)))
optimizer = torch.optim.SGD(model.parameters(), lr=2e-3)
images, targets = zip(*[plain(*s) for s in samples], strict=True)
images = torch.stack(images)
around = torch.stack([torch.cat([t["boxes"][:, :2].amin(0), t["boxes"][:, 2:].amax(0)]) for t in targets])
for step in range(4):
    found = ops.box_convert(model(images), "cxcywh", "xyxy")
    loss = nn.functional.smooth_l1_loss(found, around) + ops.generalized_box_iou_loss(found, around, reduction="mean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", step, round(float(loss), 4))
