"""torchvision: networks and enums of weights, ops of detectors, transforms, data sets and grids."""

import tempfile

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import datasets, models, ops, transforms
from torchvision.utils import make_grid, save_image

torch.manual_seed(0)
rng = np.random.default_rng(0)
image = torch.from_numpy(rng.integers(0, 256, (3, 40, 50), dtype=np.uint8))
print("version", torchvision.__version__.split("+")[0].count("."))
for name in ("resnet18", "squeezenet1_1", "densenet121"):
    model = models.get_model(name, num_classes=5).eval()
    with torch.no_grad():
        for _, p in sorted(model.state_dict().items()):
            if p.is_floating_point():
                p.copy_(torch.from_numpy(np.asarray(0.05 * rng.random(p.shape) + 0.01, np.float32)))
        scores = model(torch.from_numpy(rng.random((1, 3, 64, 64)).astype(np.float32)))[0]
    print(name, sum(p.numel() for p in model.parameters()), [round(float(v), 4) for v in scores / scores.abs().max()])
best = models.ResNet50_Weights.DEFAULT
print("weights", best, best.url.rpartition("/")[2], best.meta["num_params"], models.get_weight("VGG16_Weights.DEFAULT"))
print("listed", models.list_models(include="vgg1*", exclude="*_bn"))
prepared = best.transforms()(image)
print("prepared", tuple(prepared.shape), round(float(prepared.mean()), 3), round(float(prepared.std()), 3))
corner = torch.from_numpy((20 * rng.random((8, 2))).astype(np.float32))
boxes = torch.cat([corner, corner + torch.from_numpy((2 + 15 * rng.random((8, 2))).astype(np.float32))], 1)
scores = torch.from_numpy(rng.random(8).astype(np.float32))
print("nms", ops.nms(boxes, scores, 0.2).tolist(), ops.batched_nms(boxes, scores, torch.arange(8) % 2, 0.2).tolist())
for name in ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"):
    print(name, round(float(getattr(ops, name)(boxes, boxes.flip(0)).sum()), 3))
maps = torch.from_numpy(rng.standard_normal((1, 4, 20, 24)).astype(np.float32)).requires_grad_()
for name, found in (
    ("roi_align", ops.roi_align(maps, [boxes], (3, 3), 0.5, 2, True)), ("roi_pool", ops.roi_pool(maps, [boxes], (2, 2), 0.5)),
    ("ps_roi_align", ops.ps_roi_align(maps, [boxes], 2, 0.5, 2)),
):  # fmt: skip
    (grad,) = torch.autograd.grad((found * found).sum(), maps)
    print(name, tuple(found.shape), round(float(found.sum()), 3), round(float(grad.abs().sum()), 3))
offset, weight = (torch.from_numpy(0.5 * rng.standard_normal(s).astype(np.float32)) for s in ((1, 18, 18, 22), (2, 4, 3, 3)))
print("deform_conv2d", round(float(ops.deform_conv2d(maps, offset, weight).sum()), 3))
print("focal", round(float(ops.sigmoid_focal_loss(maps.flatten(), (maps.flatten() > 0).float(), reduction="mean")), 4))
frozen = ops.FrozenBatchNorm2d(4)
frozen.load_state_dict(torch.nn.BatchNorm2d(4).state_dict())
print("frozen", round(float(frozen(maps).sum()), 3), len(list(frozen.parameters())))
print("block", ops.Conv2dNormActivation(4, 6, 3, stride=2)(maps).shape[1:], ops.SqueezeExcitation(4, 2)(maps).shape[1:])
chain = transforms.Compose(
    [transforms.Resize(24), transforms.CenterCrop(20), transforms.Grayscale(3), transforms.ConvertImageDtype(torch.float32)]
)
print("chain", tuple(chain(image).shape), round(float(chain(image).mean()), 4))
data = datasets.FakeData(6, (3, 16, 16), 3, transforms.ToTensor())
print("data", len(data), tuple(data[0][0].shape))
grid = make_grid(torch.stack([image] * 3).float() / 255, nrow=2)
with tempfile.NamedTemporaryFile(suffix=".png") as file:
    save_image(grid, file.name)
    print("grid", Image.open(file.name).size, round(float(grid.mean()), 4))
