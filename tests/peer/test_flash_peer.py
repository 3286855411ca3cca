"""Flash attention on the emulated GPU against torch's attention on the CPU: masks, rows that see nothing, causal, heads that share keys, gradients."""

import itertools

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = pytest.mark.peer

SHAPES = [
    ((2, 3, 37, 16), (2, 3, 41, 16), (2, 3, 41, 9)),
    ((2, 4, 70, 8), (2, 2, 33, 8), (2, 2, 33, 8)),
    ((1, 2, 5, 64), (1, 2, 130, 64), (1, 2, 130, 64)),
    ((19, 8), (23, 8), (23, 8)),
]


def run(lib, device, arrays, mask, dtype, **options):
    given = [lib.tensor(a).to(device).to(getattr(lib, dtype)).requires_grad_() for a in arrays]
    m = None if mask is None else lib.tensor(mask).to(device)
    m = m if m is None or m.dtype == lib.bool else m.to(getattr(lib, dtype))
    gqa = len(arrays[0].shape) > 2 and arrays[0].shape[-3] != arrays[1].shape[-3]
    y = lib.nn.functional.scaled_dot_product_attention(*given, attn_mask=m, enable_gqa=gqa, **options)
    up = np.random.default_rng(9).standard_normal(tuple(y.shape)).astype(np.float32)
    (y * lib.tensor(up).to(device).to(getattr(lib, dtype))).sum().backward()
    return [np.asarray(x.detach().to("cpu").to(lib.float32).numpy()) for x in (y, *[g.grad for g in given])]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_as_torch_has_it(shapes, dtype):
    tt.debug.variants().clear()
    rng = np.random.default_rng(3)
    queries, keys = shapes[0][-2], shapes[1][-2]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    seen = rng.random((queries, keys)) > 0.4
    seen[2] = False
    low = np.where(rng.random((1, keys)) > 0.5, 0.0, torch.finfo(getattr(torch, dtype)).min).astype(np.float32)
    masks = {
        "none": None,
        "bool": seen,
        "numbers": rng.standard_normal((queries, keys)).astype(np.float32),
        "low": low,
        "all low": np.minimum(low, low.min()),
    }
    if dtype == "float16":
        del masks["all low"]  # beside -65504 float32 holds scores to 2^-8, whoever adds them
    allowed = {"float32": 2e-5, "bfloat16": 2.0**-6, "float16": 2.0**-9}[dtype]
    for (name, mask), causal, scale in itertools.product(masks.items(), (False, True), (None, 0.3)):
        if causal and mask is not None:
            continue
        # both round their inputs to the type; torch then computes in float32, so that one rounding of ours is measured
        rounded = [torch.tensor(a).to(getattr(torch, dtype)).float().numpy() for a in arrays]
        given = mask if mask is None or mask.dtype == bool else torch.tensor(mask).to(getattr(torch, dtype)).float().numpy()
        with torch.nn.attention.sdpa_kernel(
            torch.nn.attention.SDPBackend.MATH
        ):  # its flash kernel loses the sum beside a large maximum: weights of 1 in backward
            theirs = run(torch, "cpu", rounded, given, "float32", is_causal=causal, scale=scale)
        ours = run(tt, "cuda", rounded, mask, dtype, is_causal=causal, scale=scale)
        for a, b in zip(ours, theirs, strict=True):
            assert np.abs(a - b).max() <= allowed * max(np.abs(b).max(), 1e-3), (name, causal, scale)
    assert not tt.debug.variants()
