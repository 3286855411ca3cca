"""Liger-Kernel: the layers and losses of language models."""

from __future__ import annotations

from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import LIGER
from tests.other_kernels.trial import Run, trial

F = tt.nn.functional
_AT = "src/liger_kernel/ops"


def ops() -> Any:
    """The project's functions."""
    import liger_kernel.ops

    return liger_kernel.ops


@trial(LIGER, f"{_AT}/rms_norm.py")
def rms_norm(run: Run) -> None:
    f = ops().LigerRMSNormFunction
    run.same(lambda x, w: f.apply(x, w, 1e-6), lambda x, w: F.rms_norm(x, (80,), w, 1e-6), run.randn(6, 80), run.randn(80))


@trial(LIGER, f"{_AT}/layer_norm.py")
def layer_norm(run: Run) -> None:
    f = ops().LigerLayerNormFunction
    run.same(
        lambda x, w, b: f.apply(x, w, b, 1e-6),
        lambda x, w, b: F.layer_norm(x, (80,), w, b, 1e-6),
        run.randn(6, 80),
        run.randn(80),
        run.randn(80),
    )


@trial(LIGER, f"{_AT}/group_norm.py")
def group_norm(run: Run) -> None:
    f = ops().LigerGroupNormFunction
    run.same(
        lambda x, w, b: f.apply(x, w, b, 6, 3, 1e-6),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-6),
        run.randn(2, 6, 20),
        run.randn(6),
        run.randn(6),
    )


@trial(LIGER, f"{_AT}/swiglu.py")
def swiglu(run: Run) -> None:
    f = ops().LigerSiLUMulFunction
    run.same(f.apply, lambda a, b: F.silu(a) * b, run.randn(4, 40), run.randn(4, 40))


@trial(LIGER, f"{_AT}/geglu.py")
def geglu(run: Run) -> None:
    f = ops().LigerGELUMulFunction
    run.same(f.apply, lambda a, b: F.gelu(a, approximate="tanh") * b, run.randn(4, 40), run.randn(4, 40))


@trial(LIGER, f"{_AT}/relu_squared.py")
def relu_squared(run: Run) -> None:
    f = ops().LigerReLUSquaredFunction
    run.same(f.apply, lambda x: F.relu(x) ** 2, run.randn(4, 40))


@trial(LIGER, f"{_AT}/softmax.py")
def softmax(run: Run) -> None:
    f = ops().LigerSoftmaxFunction
    run.same(f.apply, lambda x: F.softmax(x, -1), run.randn(4, 100))


@trial(LIGER, f"{_AT}/dyt.py", "dynamic tanh")
def dyt(run: Run) -> None:
    f = ops().LigerDyTFunction
    run.same(f.apply, lambda x, a, w, b: w * tt.tanh(a * x) + b, run.randn(6, 80), run.randn(1), run.randn(80), run.randn(80))


@trial(LIGER, f"{_AT}/fused_add_rms_norm.py")
def fused_add_rms_norm(run: Run) -> None:
    f = ops().LigerFusedAddRMSNormFunction

    def plain(x: tt.Tensor, r: tt.Tensor, w: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
        return F.rms_norm(x + r, (80,), w, 1e-6), x + r

    run.same(lambda x, r, w: f.apply(x, r, w, 1e-6, 0.0, "llama", False), plain, run.randn(6, 80), run.randn(6, 80), run.randn(80))


@trial(LIGER, f"{_AT}/poly_norm.py", "weighted norms of x, x^2 and x^3")
def poly_norm(run: Run) -> None:
    f = ops().LigerPolyNormFunction

    def norm(x: tt.Tensor) -> tt.Tensor:
        return x / tt.sqrt(x.square().mean(-1, keepdim=True) + 1e-6)

    def plain(x: tt.Tensor, w: tt.Tensor, b: tt.Tensor) -> tt.Tensor:
        return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b

    run.same(lambda x, w, b: f.apply(x, w, b, 1e-6, False), plain, run.randn(6, 80), run.randn(3), run.randn(1)[0])


@trial(LIGER, f"{_AT}/rope.py", "rotary embedding of queries and keys")
def rope(run: Run) -> None:
    f = ops().LigerRopeFunction
    angles = tt.outer(tt.arange(8).float(), 1.0 / 10000 ** (tt.arange(16).float() / 16))
    angles = tt.cat([angles, angles], -1).unsqueeze(0)

    def turned(x: tt.Tensor) -> tt.Tensor:
        a, b = x.chunk(2, -1)
        return x * angles.cos() + tt.cat([-b, a], -1) * angles.sin()

    cos, sin = angles.cos().cuda(), angles.sin().cuda()
    run.same(lambda q, k: f.apply(q, k, cos, sin), lambda q, k: (turned(q), turned(k)), run.randn(2, 4, 8, 32), run.randn(2, 2, 8, 32))


@trial(LIGER, f"{_AT}/cross_entropy.py", "label smoothing and ignored labels")
def cross_entropy(run: Run) -> None:
    f = ops().LigerCrossEntropyFunction
    labels = run.randint(100, (8,))
    labels[2] = -100
    run.same(
        lambda x, t: f.apply(x * 1.0, t, None, -100, 0.0, 0.1, "mean")[0],
        lambda x, t: F.cross_entropy(x, t, ignore_index=-100, label_smoothing=0.1),
        run.randn(8, 100),
        labels,
    )


@trial(LIGER, f"{_AT}/fused_linear_cross_entropy.py", "the last matrix product and the loss, in pieces")
def fused_linear_cross_entropy(run: Run) -> None:
    f = ops().LigerFusedLinearCrossEntropyFunction
    run.same(
        lambda h, w, t: f.apply(h, w, t)[0],
        lambda h, w, t: F.cross_entropy(h @ w.t(), t),
        run.randn(8, 32),
        run.randn(50, 32),
        run.randint(50, (8,)),
    )


@trial(LIGER, f"{_AT}/kl_div.py")
def kl_div(run: Run) -> None:
    f = ops().LigerKLDivLossFunction
    p, q = run.randn(6, 50).log_softmax(-1), run.randn(6, 50).softmax(-1)
    run.same(lambda p, q: f.apply(p, q, "batchmean"), lambda p, q: F.kl_div(p, q, reduction="batchmean"), p, q, of=(0,))


@trial(LIGER, f"{_AT}/jsd.py", "Jensen-Shannon divergence")
def jsd(run: Run) -> None:
    f = ops().LigerJSDFunction
    x, y = run.randn(6, 50).log_softmax(-1), run.randn(6, 50).log_softmax(-1)

    def plain(x: tt.Tensor, y: tt.Tensor) -> tt.Tensor:
        mid = tt.log(0.5 * x.exp() + 0.5 * y.exp())
        return (0.5 * F.kl_div(mid, y, reduction="sum", log_target=True) + 0.5 * F.kl_div(mid, x, reduction="sum", log_target=True)) / 6

    run.same(lambda x, y: f.apply(x, y, None, 0.5), plain, x, y, of=(0,))


@trial(LIGER, f"{_AT}/tvd.py", "total variation distance")
def tvd(run: Run) -> None:
    f = ops().LigerTVDLossFunction
    p, q = run.randn(6, 50).softmax(-1), run.randn(6, 50).softmax(-1)
    run.same(lambda p, q: f.apply(p, q, None, "batchmean"), lambda p, q: 0.5 * (p - q).abs().sum() / 6, p, q, of=(0,))


@trial(LIGER, f"{_AT}/sparsemax.py", "sorts in the kernel's host code")
def sparsemax(run: Run) -> None:
    f = ops().LigerSparsemaxFunction

    def plain(x: tt.Tensor) -> tt.Tensor:
        z = x.sort(-1, descending=True)[0]
        k = tt.arange(1, x.shape[-1] + 1).float()
        total = z.cumsum(-1)
        size = ((1 + k * z) > total).sum(-1, keepdim=True)
        tau = (total.gather(-1, size - 1) - 1) / size.float()
        return (x - tau).clamp(min=0)

    run.same(lambda x: f.apply(x, -1), plain, run.randn(5, 60))


@trial(LIGER, f"{_AT}/multi_token_attention.py", "masking kernels around a convolution over scores", seconds=600)
def multi_token_attention(run: Run) -> None:
    f = ops().LigerMultiTokenAttentionFunction

    def plain(s: tt.Tensor, w: tt.Tensor) -> tt.Tensor:
        later = tt.triu(tt.ones(16, 16), 1).bool()
        p = F.softmax(s.masked_fill(later, -1e9), -1)
        return F.conv2d(p, w, padding=1).masked_fill(later, 0.0)

    run.same(lambda s, w: f.apply(s, w, None, 1, 1, 1, 1, False), plain, run.randn(1, 2, 16, 16), run.randn(2, 2, 3, 3))


@trial(LIGER, f"{_AT}/grpo_loss.py", "log-probabilities of chosen tokens")
def selective_log_softmax(run: Run) -> None:
    from liger_kernel.ops.grpo_loss import fused_selective_log_softmax

    logits, chosen = run.randn(2, 9, 70), run.randint(70, (2, 8))
    got = fused_selective_log_softmax(logits, chosen, 1.0)
    want = logits.cpu()[:, :-1].log_softmax(-1).gather(-1, chosen.cpu().unsqueeze(-1)).squeeze(-1)
    run.close(got, want)
