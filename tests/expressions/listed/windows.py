"""Windows over rows, images and volumes: convolutions, transposed ones, pools and their way back."""

from __future__ import annotations

_ROWS, _TAPS = "p[:, :, 0]", "w[..., 0]"
EXPRESSIONS = [
    f"F.conv1d({_ROWS}, {_TAPS})", f"F.conv1d({_ROWS}, {_TAPS}, v, 2, 1, 1)", f"F.conv1d({_ROWS}, {_TAPS}[:, :, :2], padding='same')", f"F.conv1d({_ROWS}, {_TAPS}[:2, :1], groups=2, dilation=2)", f"F.conv1d({_ROWS}[0], {_TAPS})",
    f"T.conv1d({_ROWS}, {_TAPS}, padding='valid')", f"F.conv1d({_ROWS}, {_TAPS}, stride=0)", f"F.conv1d({_ROWS}, {_TAPS}, padding=-1)", f"F.conv1d({_ROWS}, {_TAPS}, padding='full')", f"F.conv1d({_ROWS}, {_TAPS}, v, groups=3)", f"F.conv1d({_ROWS}[..., :2], {_TAPS})",
    "F.conv1d(p[0, :, :2].long(), n[:2, None, None])", "F.conv2d(p.long(), w.long(), stride=2, padding=1)", "F.conv2d(p, w.double().half())", "F.conv2d(p, w, padding='same', stride=2)",
    "F.conv3d(p[None], w[:, None])", "F.conv3d(p[None], w[:, None], v, (1, 2, 1), (0, 1, 1), (1, 1, 2))", "T.conv3d(p[None], w[:, None], padding='same')", "F.conv3d(p[None].transpose(1, 2), w[:2, :1, None], groups=2)", "F.conv3d(p, w)",
    f"F.conv_transpose1d({_ROWS}, {_TAPS}.transpose(0, 1))", f"T.conv_transpose1d({_ROWS}, {_TAPS}.transpose(0, 1), v, 2, 1, 1)", f"F.conv_transpose1d({_ROWS}, {_TAPS}.transpose(0, 1), dilation=3, output_padding=2)", f"F.conv_transpose1d({_ROWS}, {_TAPS})",
    f"F.conv_transpose1d({_ROWS}, {_TAPS}.transpose(0, 1), output_padding=1)", f"F.conv_transpose1d({_ROWS}, {_TAPS}.transpose(0, 1), padding=9)", "F.conv_transpose2d(p, w.transpose(0, 1))", "T.conv_transpose2d(p, w.transpose(0, 1), v, (2, 1), 1, (1, 0))",
    "F.conv_transpose2d(p, w.transpose(0, 1), groups=2)", "F.conv_transpose2d(p[0], w.transpose(0, 1), stride=3)", "F.conv_transpose2d(p.long(), w.long().transpose(0, 1), stride=2)", "F.conv_transpose3d(p[None], w[None].transpose(1, 2)[:, :2])",
    "T.conv_transpose3d(p[None], w[None].transpose(1, 2)[:, :2], stride=2, padding=1)", "T.convolution(p, w, v, [1, 1], [0, 1], [1, 1], False, [0, 0], 1)", f"T.convolution({_ROWS}, {_TAPS}.transpose(0, 1), None, [2], [0], [1], True, [1], 1)",
    "T.conv_tbc(b, w[0, :, :, :1].repeat(1, 1, 2), v[:2])", "F.conv_tbc(b, w[0, :, :, :1].repeat(1, 1, 2), v[:2], 1)", "F.conv_tbc(b, w[0], v)",
    "F.max_pool1d(b, 2)", "F.max_pool1d(b, 3, 1, 1, return_indices=True)", "F.max_pool1d_with_indices(b, 2, stride=1)", "F.max_pool1d(b[0], 2, ceil_mode=True)", "F.max_pool1d(b, 9)", "T.max_pool1d(b, 2)", "T.max_pool1d_with_indices(b, 2)", "F.max_pool1d(b, 2, padding=2)",
    "F.max_pool3d(p[None], (1, 2, 2))", "F.max_pool3d(p[None], 2, 1, 1, (1, 2, 1), return_indices=True)", "F.max_pool3d_with_indices(p[None], 2)", "T.max_pool3d(p, (1, 3, 2), ceil_mode=True)", "F.max_pool3d(p[None], 2, -1)",
    "F.avg_pool1d(b, 2)", "T.avg_pool1d(b, 3, 2, 1, True, False)", "F.avg_pool1d(b.long(), 2)", "F.avg_pool1d(b, 4)", "F.avg_pool3d(p[None], (2, 2, 3))", "F.avg_pool3d(p[None], 2, 1, 1, True, False, 3)", "F.avg_pool3d(p, 2, divisor_override=0)", "F.avg_pool2d(p.long(), 3, 2, 1)",
    "F.lp_pool1d(b, 2, 2)", "F.lp_pool1d(b, 3.0, 2, 1)", "F.lp_pool2d(p, 2.0, (2, 3))", "F.lp_pool2d(p, 1, 3, stride=2, ceil_mode=True)", "F.lp_pool3d(p[None], 2, (1, 2, 2))",
    "F.max_unpool1d(b, n[None, None, :3].repeat(2, 3, 1), 2, output_size=[6])", "F.max_unpool1d(b[:, :, :2], n[:2].expand(2, 3, 2), 2)", "F.max_unpool1d(b, n.expand(2, 3, 3), 2, output_size=[9])", "F.max_unpool2d(*F.max_pool2d(p, 2, return_indices=True), 2)",
    "F.max_unpool2d(*F.max_pool2d(p, 2, return_indices=True), 2, output_size=p.shape)", "F.max_unpool3d(*F.max_pool3d(p[None], (1, 2, 2), return_indices=True), (1, 2, 2), output_size=p.shape[1:])",
    "F.fractional_max_pool2d(p, 2, 3, _random_samples=p[:, :, :1, 0].detach().sigmoid().repeat(1, 1, 2))", "F.fractional_max_pool2d(p, 2, output_ratio=(0.5, 0.7), return_indices=True, _random_samples=p[:, :, :2, 0].detach().sigmoid())", "F.fractional_max_pool2d(p, 2)",
    "F.fractional_max_pool2d_with_indices(p, (1, 2), (3, 2), _random_samples=p[:, :, :2, 1].detach().sigmoid())", "F.fractional_max_pool2d(p, 2, output_ratio=(1.5, 0.5))", "F.fractional_max_pool3d(p[None], (1, 2, 2), (1, 2, 3), _random_samples=p[:, :1, :3, 1].detach().sigmoid())",
    "F.fractional_max_pool3d_with_indices(p[None], (1, 2, 2), (1, 2, 3), _random_samples=p[:, :1, :3, 1].detach().sigmoid())",
]  # fmt: skip
