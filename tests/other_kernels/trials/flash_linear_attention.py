"""flash-linear-attention: chunked and recurrent forms of linear attention, and the modules around them, each beside the recurrence that it computes."""

from __future__ import annotations

import functools
from typing import Any

import triton

import tritensor as tt
from tests.other_kernels.checkouts import FLASH_LINEAR_ATTENTION
from tests.other_kernels.trial import Run, trial

F = tt.nn.functional
_OPS, _MODULES = "fla/ops", "fla/modules"
B, T, H, K, V = 2, 70, 2, 16, 32  # a chunk of 64 and a bit


def ops(name: str = "fla.ops") -> Any:
    """One module of fla, imported as its users do. Of the keys that it gives triton.autotune, those that are no arguments of the kernel are left out:
    one has such a key, which Triton 3.9 refuses and earlier ones ignored."""
    import importlib

    autotune = triton.autotune

    @functools.wraps(autotune)
    def with_known_keys(configs: Any, key: Any, **options: Any) -> Any:
        def decorate(fn: Any) -> Any:
            kernel = fn
            while not hasattr(kernel, "arg_names"):
                kernel = kernel.fn
            return autotune(configs, [k for k in key if k in kernel.arg_names], **options)(fn)

        return decorate

    triton.autotune = with_known_keys
    try:
        return importlib.import_module(name)
    finally:
        triton.autotune = autotune


def recurrence(q: tt.Tensor, k: tt.Tensor, v: tt.Tensor, decay: Any = None, beta: Any = None, bonus: Any = None) -> tt.Tensor:
    """The state S, a matrix of each head, step by step: it decays, the delta rule (`beta`) takes away what S holds for the key, k v^T is added, q reads it.
    With a bonus, q reads the state of the step before and u k v^T."""
    q = q * q.shape[-1] ** -0.5
    state, out = tt.zeros(*k.shape[:1], *k.shape[2:], v.shape[-1]), []
    for t in range(q.shape[1]):
        value = v[:, t]
        if bonus is not None:
            out.append(_read(q[:, t], state + (bonus * k[:, t]).unsqueeze(-1) * value.unsqueeze(-2)))
        if decay is not None:
            e = decay[:, t].exp().unsqueeze(-1)
            state = state * (e if e.dim() == 4 else e.unsqueeze(-1))
        if beta is not None:
            value = (value - _read(k[:, t], state)) * beta[:, t].unsqueeze(-1)
        state = state + k[:, t].unsqueeze(-1) * value.unsqueeze(-2)
        if bonus is None:
            out.append(_read(q[:, t], state))
    return tt.stack(out, 1)


def _read(row: tt.Tensor, state: tt.Tensor) -> tt.Tensor:
    return (row.unsqueeze(-1) * state).sum(-2)


def inputs(run: Run, steps: int = T) -> tuple[tt.Tensor, tt.Tensor, tt.Tensor]:
    """Queries, keys of length 1, values."""
    k = run.randn(B, steps, H, K)
    return run.randn(B, steps, H, K), k / k.norm(dim=-1, keepdim=True), run.randn(B, steps, H, V)


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/linear_attn/fused_chunk.py")
def linear_attention(run: Run) -> None:
    chunked = ops().fused_chunk_linear_attn
    run.same(lambda *a: chunked(*a, normalize=False)[0], recurrence, *inputs(run), tolerance=2e-3)


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/gla/fused_recurrent.py", "gated linear attention, step by step")
def gla_recurrent(run: Run) -> None:
    recurrent = ops().fused_recurrent_gla
    run.same(lambda *a: recurrent(*a)[0], recurrence, *inputs(run, 20), F.logsigmoid(run.randn(B, 20, H, K)))


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/gla/chunk.py", "gated linear attention, in chunks")
def gla(run: Run) -> None:
    chunked = ops().chunk_gla
    run.same(lambda *a: chunked(*a)[0], recurrence, *inputs(run), F.logsigmoid(run.randn(B, T, H, K)), tolerance=2e-3)


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/retention/parallel.py")
def retention(run: Run) -> None:
    parallel = ops().parallel_retention
    rates = tt.log(1 - 2.0 ** (-5.0 - tt.arange(H).float())).view(1, 1, H).expand(B, T, H)
    run.same(lambda *a: parallel(*a)[0], lambda q, k, v: recurrence(q, k, v, rates), *inputs(run), tolerance=2e-3)


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/gated_delta_rule/chunk.py", "Gated DeltaNet in bfloat16; inverts a triangular matrix of each chunk")
def gated_delta_rule(run: Run) -> None:
    chunked = ops().chunk_gated_delta_rule
    given = [x.to(tt.bfloat16) for x in inputs(run)]
    gate, beta = F.logsigmoid(run.randn(B, T, H)), run.rand(B, T, H, dtype=tt.bfloat16)
    run.same(lambda *a: chunked(*a)[0], recurrence, *given, gate, beta, tolerance=0.03)


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/rwkv6/fused_recurrent.py")
def rwkv6_recurrent(run: Run) -> None:
    recurrent = ops().fused_recurrent_rwkv6
    given = (*inputs(run, 20), F.logsigmoid(run.randn(B, 20, H, K)), run.randn(H, K))
    run.same(lambda *a: recurrent(*a)[0], lambda q, k, v, w, u: recurrence(q, k, v, w, bonus=u), *given)


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/hgrn/chunk.py")
def hgrn(run: Run) -> None:
    chunked = ops("fla.ops.hgrn").chunk_hgrn

    def plain(x: tt.Tensor, g: tt.Tensor) -> tt.Tensor:
        state, out = tt.zeros(B, 40), []
        for t in range(T):
            state = state * g[:, t].exp() + x[:, t]
            out.append(state)
        return tt.stack(out, 1)

    run.same(lambda *a: chunked(*a)[0], plain, run.randn(B, T, 40), F.logsigmoid(run.randn(B, T, 40)))


@trial(FLASH_LINEAR_ATTENTION, f"{_OPS}/forgetting_attn/parallel.py", "grouped queries, and a bias that sums gates")
def forgetting_attention(run: Run) -> None:
    def plain(q: tt.Tensor, k: tt.Tensor, v: tt.Tensor, g: tt.Tensor) -> tt.Tensor:
        q, k, v = q.transpose(1, 2), k.transpose(1, 2).repeat_interleave(2, 1), v.transpose(1, 2).repeat_interleave(2, 1)
        sums = g.cumsum(1).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) * 32**-0.5 + sums.unsqueeze(-1) - sums.unsqueeze(-2)
        later = ~tt.ones(T, T, dtype=tt.bool).tril()
        return (scores.masked_fill(later, float("-inf")).softmax(-1) @ v).transpose(1, 2)

    given = (run.randn(B, T, 4, 32), run.randn(B, T, 2, 32), run.randn(B, T, 2, 32), F.logsigmoid(run.randn(B, T, 4)))
    run.same(ops().parallel_forgetting_attn, plain, *given, tolerance=3e-3)


@trial(FLASH_LINEAR_ATTENTION, f"{_MODULES}/layernorm.py", "programs' tiles of rows overlap, and store the same numbers there")
def layer_norm(run: Run) -> None:
    from_file = ops("fla.modules.layernorm")
    x, w, b = run.randn(3, 5, 64), run.randn(64), run.randn(64)
    run.same(from_file.layer_norm, lambda x, w, b: F.layer_norm(x, (64,), w, b), x, w, b)
    run.same(lambda x, w: from_file.rms_norm(x, w, None), lambda x, w: F.rms_norm(x, (64,), w, 1e-5), x, w)


@trial(FLASH_LINEAR_ATTENTION, f"{_MODULES}/fused_norm_gate.py")
def norm_gate(run: Run) -> None:
    gated = ops("fla.modules.fused_norm_gate").rms_norm_gated
    given = (run.randn(3, 5, 64), run.randn(3, 5, 64), run.randn(64))
    for name, gate in (("swish", F.silu), ("sigmoid", tt.sigmoid)):
        run.same(
            lambda x, g, w, name=name: gated(x, g, w, None, name),
            lambda x, g, w, gate=gate: F.rms_norm(x, (64,), w, 1e-6) * gate(g),
            *given,
        )


@trial(FLASH_LINEAR_ATTENTION, f"{_MODULES}/conv/triton/ops.py", "ShortConvolution: whole, packed sequences, and step by step from a cache")
def short_convolution(run: Run) -> None:
    layer = ops("fla.modules").ShortConvolution(32, 4, bias=True, activation="silu").cuda()
    w, b = layer.weight.detach().cpu(), layer.bias.detach().cpu()

    def plain(x: tt.Tensor) -> tt.Tensor:
        return F.silu(F.conv1d(F.pad(x.transpose(1, 2), (3, 0)), w, b, groups=32).transpose(1, 2))

    run.same(lambda x: layer(x)[0], plain, run.randn(2, 37, 32))
    x = run.randn(2, 20, 32)
    y, cache = layer(x[:, :15], output_final_state=True)
    parts = [y]
    for t in range(15, 20):
        y, cache = layer(x[:, t : t + 1], cache=cache, output_final_state=True)
        parts.append(y)
    run.close(tt.cat(parts, 1), plain(x.cpu()))
    starts = tt.tensor([0, 8, 20]).cuda()
    run.close(layer(x[:1], cu_seqlens=starts)[0], tt.cat([plain(x[:1, :8].cpu()), plain(x[:1, 8:].cpu())], 1))


@trial(FLASH_LINEAR_ATTENTION, f"{_MODULES}/fused_linear_cross_entropy.py", "the last matrix product and the loss, in pieces")
def linear_cross_entropy(run: Run) -> None:
    loss = ops("fla.modules").FusedLinearCrossEntropyLoss(num_chunks=2)
    labels = run.randint(90, (12,))
    labels[3] = -100
    given = (run.randn(12, 32), run.randn(90, 32), run.randn(90))
    run.same(lambda x, w, b: loss(x, labels, w, b), lambda x, w, b: F.cross_entropy(F.linear(x, w, b), labels.cpu()), *given)
