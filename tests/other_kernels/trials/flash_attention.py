"""flash-attention: its Triton files, each alone, since the package's own file imports CUDA extensions."""

from __future__ import annotations

import importlib
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import FLASH_ATTENTION
from tests.other_kernels.trial import Run, bare, trial

F = tt.nn.functional


def kernels(run: Run, path: str) -> Any:
    """One file of flash_attn. The packages above it are empty stand-ins."""
    bare(run.folder, "flash_attn", "flash_attn.ops", "flash_attn.ops.triton", "flash_attn.utils")
    return importlib.import_module(f"flash_attn.{path}")


@trial(
    FLASH_ATTENTION,
    "flash_attn/ops/triton/rotary.py",
    "halves and pairs, sequences of one length and several, offsets, conjugate and in place",
)
def rotary(run: Run) -> None:
    turn = kernels(run, "ops.triton.rotary").apply_rotary
    angles = tt.outer(tt.arange(20).float(), 1.0 / 100 ** (tt.arange(12).float() / 12))
    cos, sin = angles.cos().cuda(), angles.sin().cuda()
    x = run.randn(2, 10, 3, 32)

    def plain(x: tt.Tensor, start: int = 0, pairs: bool = False, sign: float = 1.0) -> tt.Tensor:
        rows = angles[start : start + x.shape[-3]].unsqueeze(-2)
        c, s, part = rows.cos(), rows.sin() * sign, x[..., :24]
        a, b = (part[..., ::2], part[..., 1::2]) if pairs else part.chunk(2, -1)
        turned = (a * c - b * s, a * s + b * c)
        mixed = tt.stack(turned, -1).flatten(-2) if pairs else tt.cat(turned, -1)
        return tt.cat([mixed, x[..., 24:]], -1)

    here = x.cpu()
    run.close(turn(x, cos, sin), plain(here), 1e-6)
    run.close(turn(x, cos, sin, interleaved=True), plain(here, pairs=True), 1e-6)
    run.close(turn(x, cos, sin, conjugate=True, seqlen_offsets=4), plain(here, 4, sign=-1.0), 1e-6)
    offsets = tt.tensor([3, 7], dtype=tt.int32).cuda()
    run.close(turn(x, cos, sin, offsets), tt.stack([plain(here[0], 3), plain(here[1], 7)]), 1e-6)
    ends = tt.tensor([0, 4, 10], dtype=tt.int32).cuda()
    run.close(turn(x[0], cos, sin, cu_seqlens=ends, max_seqlen=6), tt.cat([plain(here[0, :4]), plain(here[0, 4:])]), 1e-6)
    run.close(turn(x, cos, sin, inplace=True), plain(here), 1e-6)
    run.close(x, plain(here), 1e-6)


@trial(FLASH_ATTENTION, "flash_attn/ops/triton/cross_entropy.py", "label smoothing, ignored labels, the z-loss and a given log-sum")
def cross_entropy(run: Run) -> None:
    loss = kernels(run, "ops.triton.cross_entropy").cross_entropy_loss
    labels = run.randint(90, (7,))
    labels[3] = -100

    def plain(x: tt.Tensor, smoothing: float = 0.0, scale: float = 1.0, square: float = 0.0) -> tuple[tt.Tensor, tt.Tensor]:
        z = (square * (x * scale).logsumexp(-1) ** 2).masked_fill(labels.cpu() == -100, 0.0)
        return F.cross_entropy(x * scale, labels.cpu(), label_smoothing=smoothing, reduction="none") + z, z.detach()

    x = run.randn(7, 90)
    run.same(lambda x: loss(x, labels), plain, x)
    run.same(lambda x: loss(x, labels, None, 0.1, 0.7, 1e-2), lambda x: plain(x, 0.1, 0.7, 1e-2), x)
    run.close(loss(x, labels, x.logsumexp(-1))[0], plain(x.cpu())[0])
