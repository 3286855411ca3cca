"""kornia: colours, filters, geometry, features, losses and augmentation of images as tensors, and their gradients."""

import kornia
import kornia.augmentation as K
import kornia.feature as KF
import kornia.geometry as KG
import numpy as np
import torch

torch.manual_seed(0)
rng = np.random.default_rng(0)
image = torch.from_numpy(rng.random((2, 3, 24, 32)).astype(np.float32))


def show(name, value):
    print(name, tuple(value.shape), round(float(value.float().mean()), 4), round(float(value.float().std()), 4))


for name in ("rgb_to_grayscale", "rgb_to_hsv", "rgb_to_lab", "rgb_to_ycbcr", "rgb_to_xyz", "rgb_to_luv", "rgb_to_yuv"):
    show(name, getattr(kornia.color, name)(image))
show("hsv back", kornia.color.hsv_to_rgb(kornia.color.rgb_to_hsv(image)) - image)
show("gaussian", kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5)))
show("sobel", kornia.filters.sobel(image))
show("canny", kornia.filters.canny(image)[0])
show("median", kornia.filters.median_blur(image, (3, 3)))
show("bilateral", kornia.filters.bilateral_blur(image, (3, 3), 0.1, (1.0, 1.0)))
show("unsharp", kornia.filters.unsharp_mask(image, (3, 3), (1.0, 1.0)))
for name, value in (("adjust_hue", 0.3), ("adjust_gamma", 1.5), ("adjust_contrast", 0.7), ("adjust_saturation", 1.4)):
    show(name, getattr(kornia.enhance, name)(image, value))
show("equalize", kornia.enhance.equalize(image))
show("clahe", kornia.enhance.equalize_clahe(image, grid_size=(4, 4)))
kernel = torch.ones(3, 3)
show("dilation", kornia.morphology.dilation(image, kernel))
show("rotate", KG.rotate(image, torch.tensor([30.0, -45.0])))
show("resize", KG.resize(image, (12, 20)))
square = torch.tensor([[[0.0, 0], [31, 0], [31, 23], [0, 23]]]).repeat(2, 1, 1)
shifted = square + torch.tensor([[2.0, 1], [-3, 2], [1, -2], [4, 1]])
matrix = KG.get_perspective_transform(square, shifted)
show("perspective", matrix)
show("warped", KG.warp_perspective(image, matrix, (24, 32)))
show("homography", KG.find_homography_dlt(square, shifted))
show("angles", KG.axis_angle_to_rotation_matrix(torch.tensor([[0.1, -0.4, 0.7]])))
show(
    "distances",
    KG.camera.PinholeCamera(torch.eye(4)[None], torch.eye(4)[None], torch.tensor([24.0]), torch.tensor([32.0])).project(
        torch.ones(1, 5, 3)
    ),
)
show("corners", KF.harris_response(kornia.color.rgb_to_grayscale(image)))
show("described", KF.SIFTDescriptor(16)(torch.from_numpy(rng.random((3, 1, 16, 16)).astype(np.float32))))
x = image.clone().requires_grad_()
for name, loss in (
    ("ssim", kornia.losses.ssim_loss(x, image.flip(-1), 5)), ("psnr", kornia.losses.psnr_loss(x, image.flip(-1), 1.0)),
    ("tv", kornia.losses.total_variation(x).sum()), ("charbonnier", kornia.losses.charbonnier_loss(x, image.flip(-1), reduction="mean")),
):  # fmt: skip
    (grad,) = torch.autograd.grad(loss, x)
    print(name, round(float(loss), 4), round(float(grad.abs().sum()), 4))
augment = K.AugmentationSequential(
    K.RandomHorizontalFlip(p=1.0),
    K.RandomAffine((20.0, 20.0), p=1.0),
    K.ColorJiggle(0.1, 0.1, 0.1, 0.1, p=1.0),
    data_keys=["input", "mask"],
)
changed, mask = augment(image, (image > 0.5).float())
print("augmented", tuple(changed.shape), tuple(mask.shape), tuple(augment.transform_matrix.shape))
show("flipped", K.RandomHorizontalFlip(p=1.0)(image) - image.flip(-1))
