"""Images: padding, resampling, sampling at a grid, patches, shuffles, adaptive pooling, distances between vectors."""

from __future__ import annotations

EXPRESSIONS = [
    "F.pad(p, (1, 2, 3, 0), 'reflect')", "F.pad(p[0], (1, 1, 2, 2), 'reflect')", "F.pad(b, (2, 1), 'reflect')", "F.pad(p, (1, -1, -2, 3), 'replicate')", "F.pad(p, (-1, -2, 0, 0), 'reflect')", "F.pad(p, (0, 0, 0, 0), 'reflect')",
    "F.pad(p[None], (1, 0, 2, 1, 1, 1), 'replicate')", "F.pad(p[None], (1, 0, 2, 1, 1, 1), 'reflect')", "F.pad(p, (5, 0, 0, 5), 'circular')", "F.pad(p, (6, 0, 0, 0), 'circular')", "F.pad(p, (5, 0, 0, 0), 'reflect')",
    "F.pad(p.transpose(1, 3).contiguous().transpose(1, 3), (1, 1, 1, 1), 'reflect')", "F.pad(p.transpose(1, 3).contiguous().transpose(1, 3), (1, 1), value=2.0)", "F.pad(i, (1, 2), value=7)", "F.pad(k, (1, 0), value=True)", "F.pad(i[None], (1, 2), 'reflect')",
    "F.pad(i, (0, 1), value=2.7)", "T.constant_pad_nd(x, (1, -1, 2, 0), 1.5)", "T.constant_pad_nd(x, (1, 1))", "T.constant_pad_nd(x, (1,))", "T.constant_pad_nd(x, (-2, -2))", "T.constant_pad_nd(i, (1, 1), 3)",
    "F.interpolate(p, 7)", "F.interpolate(p, (3, 9))", "F.interpolate(p, scale_factor=1.7)", "F.interpolate(p, scale_factor=(2, 0.5), mode='nearest-exact')", "F.interpolate(b, 5, mode='linear')", "F.interpolate(b, 5, mode='linear', align_corners=True)",
    "F.interpolate(p, (8, 3), mode='bilinear')", "F.interpolate(p, (8, 3), mode='bilinear', align_corners=True)", "F.interpolate(p, scale_factor=1.3, mode='bilinear')", "F.interpolate(p, scale_factor=1.3, mode='bilinear', recompute_scale_factor=True)",
    "F.interpolate(p, (8, 3), mode='bicubic')", "F.interpolate(p, (4, 9), mode='bicubic', align_corners=True)", "F.interpolate(p, scale_factor=0.7, mode='bicubic')", "F.interpolate(p, (3, 7), mode='area')", "F.interpolate(p, scale_factor=0.6, mode='area')",
    "F.interpolate(p, (3, 7), mode='bilinear', antialias=True)", "F.interpolate(p, (2, 6), mode='bicubic', antialias=True)", "F.interpolate(p[None], (2, 3, 6), mode='trilinear')", "F.interpolate(p[None], (2, 3, 6), mode='trilinear', align_corners=True)",
    "F.interpolate(p[None], scale_factor=2)", "F.interpolate(b, 2, mode='area')", "F.interpolate(p[None], (1, 3, 2), mode='area')", "F.interpolate(p.transpose(1, 3).contiguous().transpose(1, 3), 7, mode='bilinear')",
    "F.interpolate(p)", "F.interpolate(p, 3, 2)", "F.interpolate(p, (3, 3, 3))", "F.interpolate(p, 3, mode='linear')", "F.interpolate(p, 3, mode='cubic')", "F.interpolate(x, 3)", "F.interpolate(p, 3, align_corners=True)", "F.interpolate(p, 3, mode='nearest', antialias=True)",
    "F.interpolate(p, 3, recompute_scale_factor=True)", "F.interpolate(p, 0)", "F.interpolate(i[None], 2)", "F.interpolate(u[None], 2)", "F.upsample(p, scale_factor=2)", "F.upsample(p, 4, mode='bilinear', align_corners=True)", "F.upsample_nearest(p, 7)", "F.upsample_bilinear(p, 7)",
    "F.grid_sample(p, b[:1, :, :2, None].transpose(2, 3))", "F.grid_sample(p, b[None, :, :, :2] / 3)", "F.grid_sample(p, b[None, :, :, :2] / 3, 'nearest', 'border')", "F.grid_sample(p, b[None, :, :, :2] / 2, 'bilinear', 'border', align_corners=True)",
    "F.grid_sample(p, b[None, :, :, :2] / 2, padding_mode='reflection')", "F.grid_sample(p, b[None, :, :, :2] / 2, padding_mode='reflection', align_corners=True)", "F.grid_sample(p, b[None, :, :, :2] / 2, 'bicubic')",
    "F.grid_sample(p, b[None, :, :, :2] / 2, 'bicubic', 'border', True)", "F.grid_sample(p, b[None, :, :, :2] / 2, 'bicubic', 'reflection')", "F.grid_sample(p[None], b[None, None] / 2)", "F.grid_sample(p[None], b[None, None] / 2, 'nearest', align_corners=True)",
    "F.grid_sample(p[None], b[None, None], padding_mode='reflection')", "F.grid_sample(p, b)", "F.grid_sample(p, b[None])", "F.grid_sample(p, b[None, :, :, :2], 'cubic')", "F.grid_sample(p, b[None, :, :, :2], padding_mode='same')", "F.grid_sample(p[None], b[None, None], 'bicubic')",
    "T.grid_sampler(p, b[None, :, :, :2] / 3, 0, 0, False)", "T.grid_sampler_2d(p, b[None, :, :, :2] / 3, 0, 1, True)", "T.grid_sampler_3d(p[None], b[None, None] / 3, 0, 2, True)",
    "F.affine_grid(b[:, :2], (2, 1, 3, 4))", "F.affine_grid(b[:, :2], (2, 1, 3, 4), True)", "F.affine_grid(b[:, :2], (2, 1, 3))", "F.affine_grid(b, (2, 1, 3, 4))", "T.affine_grid_generator(b[:, :2], (2, 1, 2, 2), False)",
    "F.unfold(p, 2)", "F.unfold(p, (2, 3), dilation=(1, 2), padding=1, stride=2)", "F.unfold(p[0], 3)", "F.unfold(p, 7)", "F.fold(F.unfold(p, 2), 5, 2)", "F.fold(F.unfold(p, (2, 3), padding=1, stride=2), (5, 5), (2, 3), padding=1, stride=2)",
    "F.fold(x, 4, 2)", "F.fold(p[0, :, :4, :4].reshape(8, 4), 3, 2)", "F.fold(b, 3, 2)",
    "F.pixel_shuffle(p.reshape(1, 2, 5, 5).repeat(1, 2, 1, 1), 2)", "F.pixel_unshuffle(p[:, :, :4, :4], 2)", "F.pixel_unshuffle(p, 2)", "F.pixel_shuffle(p, 2)", "T.pixel_shuffle(p[:, :, :, :2].repeat(1, 2, 1, 1), 2)", "T.pixel_unshuffle(p[..., :4, :4], 4)", "F.pixel_shuffle(x, 1)", "F.pixel_shuffle(p, 0)",
    "F.channel_shuffle(p.repeat(1, 3, 1, 1), 3)", "F.channel_shuffle(p, 3)", "T.channel_shuffle(b.reshape(1, 6, 3), 2)", "F.channel_shuffle(p.repeat(1, 2, 1, 1).transpose(1, 3).contiguous().transpose(1, 3), 2)", "F.native_channel_shuffle(p, 2)", "T.native_channel_shuffle(p, 1)",
    "F.adaptive_avg_pool1d(b, 2)", "F.adaptive_avg_pool2d(p, (3, None))", "F.adaptive_avg_pool2d(p, 1)", "F.adaptive_avg_pool2d(p[0], (2, 7))", "F.adaptive_avg_pool3d(p[None], (1, 3, 2))", "F.adaptive_avg_pool2d(x, 2)", "F.adaptive_avg_pool2d(p, (1, 2, 3))", "F.adaptive_avg_pool2d(p, 0)",
    "F.adaptive_max_pool1d(b, 2)", "F.adaptive_max_pool2d(p, (3, 2))", "F.adaptive_max_pool2d(p, (3, 2), return_indices=True)", "F.adaptive_max_pool2d(p, (None, 1))", "F.adaptive_max_pool3d(p[None], (1, 3, 2), True)", "F.adaptive_max_pool2d(p[0], 2)", "F.adaptive_max_pool1d(x, 2, True)", "F.adaptive_max_pool2d(p, -1)",
    "F.adaptive_max_pool1d_with_indices(b, 2)", "F.adaptive_max_pool2d_with_indices(p, 2)", "F.adaptive_max_pool3d_with_indices(p[None], 2)",
    "F.cosine_similarity(x, y)", "F.cosine_similarity(x, y, 0)", "F.cosine_similarity(x, v, dim=-1)", "F.cosine_similarity(x * 0, y)", "F.cosine_similarity(i, i)", "T.cosine_similarity(x, y, 1, 1e-3)", "F.pairwise_distance(x, y)", "F.pairwise_distance(x, y, 1, keepdim=True)", "F.pairwise_distance(x, v, p=3.0)", "T.pairwise_distance(x, y)", "F.pairwise_distance(o, o)",
    # images of bytes: each axis rounded, the last one first
    *[f"F.interpolate((p.detach() * 40 + 120).clamp(0, 255).to(T.uint8), size={size}, mode='{mode}', align_corners={align}, antialias={aa})"
      for mode in ("bilinear", "bicubic") for size, align, aa in (((7, 9), False, False), ((3, 8), True, False), ((2, 3), False, True), ((5, 5), False, True), ((5, 11), False, False))],
    *[f"F.interpolate(p.detach().abs().to(T.{t}), scale_factor={factor}, mode='nearest')" for t in ("float32", "uint8") for factor in ("1.1", "2.1", "(1.1, 2.1)", "1.5")],
]  # fmt: skip
# What is otherwise than in PyTorch on purpose: why
MEANT: dict[str, str] = {}
