"""mamba: selective state spaces, the files of ops/triton alone, since the package's own file imports CUDA extensions."""

from __future__ import annotations

import importlib
import itertools
import math
import os
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import MAMBA
from tests.other_kernels.trial import Run, bare, trial

F = tt.nn.functional
_AT = "mamba_ssm/ops/triton"


def kernels(run: Run, name: str) -> Any:
    """One file of mamba_ssm/ops/triton. The packages above it are empty stand-ins. In the project's deterministic mode a kernel has one config and not
    dozens, so that all fifteen of the scan are compiled in seconds."""
    if name.startswith("ssd"):
        os.environ["MAMBA_DETERMINISTIC"] = "1"
    bare(run.folder, "mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton", "mamba_ssm.utils")
    return importlib.import_module(f"mamba_ssm.ops.triton.{name}")


def _rms(x: tt.Tensor, w: tt.Tensor, eps: float) -> tt.Tensor:
    return x * tt.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


@trial(MAMBA, f"{_AT}/layernorm_gated.py", "gated before and after, in groups, with a mean and without")
def layernorm_gated(run: Run) -> None:
    from_file = kernels(run, "layernorm_gated")
    x, z, w, b = run.randn(3, 4, 96), run.randn(3, 4, 96), run.randn(96), run.randn(96)
    run.same(
        lambda x, w, z: from_file.rmsnorm_fn(x, w, None, z, norm_before_gate=True), lambda x, w, z: _rms(x, w, 1e-6) * F.silu(z), x, w, z
    )

    def grouped(x: tt.Tensor, w: tt.Tensor, b: tt.Tensor, z: tt.Tensor) -> tt.Tensor:
        y = (x * F.silu(z)).reshape(3, 4, 3, 32)
        return F.layer_norm(y, (32,), eps=1e-6).reshape(3, 4, 96) * w + b

    run.same(lambda x, w, b, z: from_file.layernorm_fn(x, w, b, z, group_size=32, norm_before_gate=False), grouped, x, w, b, z)


@trial(MAMBA, f"{_AT}/layer_norm.py", "with a residual; with dropout, whose mask is its own choice; with a linear layer after it")
def layer_norm(run: Run) -> None:
    from_file = kernels(run, "layer_norm")
    x, r, w, b = run.randn(3, 5, 96), run.randn(3, 5, 96), run.randn(96), run.randn(96)

    def plain(x: tt.Tensor, w: tt.Tensor, b: tt.Tensor, r: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
        return F.layer_norm(x + r, (96,), w, b, 1e-6), x + r

    run.same(lambda x, w, b, r: from_file.layer_norm_fn(x, w, b, r, prenorm=True), plain, x, w, b, r)
    run.same(lambda x, w: from_file.rms_norm_fn(x, w, None), lambda x, w: _rms(x, w, 1e-6), x, w)
    y, mask, _ = from_file.layer_norm_fn(x, w, b, dropout_p=0.3, return_dropout_mask=True)
    if run.numbers:
        assert 0.5 < float(mask.float().mean()) < 0.9
    run.close(y, F.layer_norm(x.cpu() * mask.cpu().float() / 0.7, (96,), w.cpu(), b.cpu(), 1e-6))
    lw, lb = run.randn(40, 96), run.randn(40)
    run.same(
        lambda x, w, b, lw, lb: from_file.layer_norm_linear_fn(x, w, b, lw, lb),
        lambda x, w, b, lw, lb: F.linear(F.layer_norm(x, (96,), w, b, 1e-6), lw, lb),
        x,
        w,
        b,
        lw,
        lb,
    )


@trial(MAMBA, f"{_AT}/k_activations.py", "SwiGLU")
def swiglu(run: Run) -> None:
    def plain(xy: tt.Tensor) -> tt.Tensor:
        x, y = xy.chunk(2, -1)
        return F.silu(x) * y

    run.same(kernels(run, "k_activations").swiglu, plain, run.randn(3, 4, 2 * 75))


@trial(MAMBA, f"{_AT}/selective_state_update.py", "one step of the recurrence, with heads and without, dt tied or not")
def selective_state_update(run: Run) -> None:
    update = kernels(run, "selective_state_update").selective_state_update
    state, x, dt, a = run.randn(2, 4, 20, 16), run.randn(2, 4, 20), run.randn(2, 4, 20), -run.rand(4, 20, 16) - 0.5
    b, c, d, z, bias = run.randn(2, 2, 16), run.randn(2, 2, 16), run.randn(4, 20), run.randn(2, 4, 20), run.randn(4, 20)

    def plain(*inputs: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
        state, x, dt, a, b, c, d, z, bias = (t.cpu() for t in inputs)
        step = F.softplus(dt + bias)
        heads = state.shape[1] // b.shape[1]
        b, c = b.repeat_interleave(heads, 1), c.repeat_interleave(heads, 1)
        new = state * tt.exp(step[..., None] * a) + step[..., None] * b[:, :, None] * x[..., None]
        return ((new * c[:, :, None]).sum(-1) + x * d) * F.silu(z), new

    want = plain(state, x, dt, a, b, c, d, z, bias)
    mine = state.clone()
    run.close((update(mine, x, dt, a, b, c, d, z, bias, True), mine), want)
    tied = [run.randn(2, 4, 1).expand(2, 4, 20), (-run.rand(4, 1, 1)).expand(4, 20, 16), run.randn(4, 1).expand(4, 20)]
    want = plain(state, x, tied[0], tied[1], b, c, d, z, tied[2])
    mine = state.clone()
    run.close((update(mine, x, tied[0], tied[1], b, c, d, z, tied[2], True), mine), want)
    rows = tt.tensor([2, -1], dtype=tt.int32).cuda()
    pool = run.randn(3, 4, 20, 16)
    want = plain(pool[2:], x[:1], dt[:1], a, b[:1], c[:1], d, z[:1], bias)
    y = update(pool, x, dt, a, b, c, d, z, bias, True, rows)
    run.close((y[:1], y[1], pool[2:]), (want[0], tt.zeros(4, 20), want[1]))


def _recurrence(x: Any, dt: Any, a: Any, b: Any, c: Any, first: Any = None) -> tuple[tt.Tensor, tt.Tensor]:
    """The recurrence, step by step: h = exp(dt A) h + dt B x, y = C h; y and the last h."""
    heads = x.shape[2] // b.shape[2]
    b, c = b.repeat_interleave(heads, 2), c.repeat_interleave(heads, 2)
    h = tt.zeros(x.shape[0], x.shape[2], x.shape[3], b.shape[3]) if first is None else first
    rows = []
    for t in range(x.shape[1]):
        h = tt.exp(dt[:, t] * a)[..., None, None] * h + (dt[:, t, :, None] * x[:, t])[..., None] * b[:, t, :, None]
        rows.append((h * c[:, t, :, None]).sum(-1))
    return tt.stack(rows, 1), h


@trial(MAMBA, f"{_AT}/ssd_combined.py", "state space duality in chunks, forward and backward, gated; its deterministic mode")
def ssd_combined(run: Run) -> None:
    scan = kernels(run, "ssd_combined").mamba_chunk_scan_combined
    x, dt, a = run.randn(1, 40, 2, 16), run.randn(1, 40, 2) - 1.0, -run.rand(2) - 0.1
    b, c, d, z, bias = run.randn(1, 40, 1, 16), run.randn(1, 40, 1, 16), run.randn(2), run.randn(1, 40, 2, 16), run.randn(2)
    first = run.randn(1, 2, 16, 16)

    def theirs(x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any, z: Any, bias: Any, first: Any) -> Any:
        return scan(x, dt, a, b, c, 16, d, z, bias, first, dt_softplus=True, return_final_states=True)

    def plain(x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any, z: Any, bias: Any, first: Any) -> Any:
        y, last = _recurrence(x, F.softplus(dt + bias), a, b, c, first)
        return (y + x * d[:, None]) * F.silu(z), last

    run.same(theirs, plain, x, dt, a, b, c, d, z, bias, first, tolerance=1e-3)


@trial(MAMBA, f"{_AT}/ssd_combined.py", "several sequences in one row; its deterministic mode")
def ssd_varlen(run: Run) -> None:
    scan = kernels(run, "ssd_combined").mamba_chunk_scan_combined
    x, dt, a = run.randn(1, 48, 2, 16), run.rand(1, 48, 2), -run.rand(2) - 0.1
    b, c = run.randn(1, 48, 1, 16), run.randn(1, 48, 1, 16)
    ends = [0, 10, 30, 48]
    seq = tt.tensor([[i for i in range(3) for _ in range(ends[i + 1] - ends[i])]], dtype=tt.int32).cuda()
    cu = tt.tensor(ends, dtype=tt.int32).cuda()

    def plain(x: Any, dt: Any, a: Any, b: Any, c: Any) -> tuple[tt.Tensor, tt.Tensor]:
        parts = [_recurrence(*(t[:, s:e] for t in (x, dt)), a, *(t[:, s:e] for t in (b, c))) for s, e in itertools.pairwise(ends)]
        return tt.cat([y for y, _ in parts], 1), tt.cat([h for _, h in parts], 0)

    got = scan(x, dt, a, b, c, 16, seq_idx=seq, cu_seqlens=cu, return_varlen_states=True)
    run.close(got, plain(*(t.cpu() for t in (x, dt, a, b, c))), 1e-3)
    run.same(lambda *t: scan(*t, 16, seq_idx=seq), lambda *t: plain(*t)[0], x, dt, a, b, c, tolerance=1e-3)


# mamba 3: angles that turn with time, whose sines, cosines and tangents are one instruction each (inline PTX)
def third(run: Run, name: str) -> Any:
    bare(run.folder, "mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton", "mamba_ssm.ops.triton.mamba3")
    return importlib.import_module(f"mamba_ssm.ops.triton.mamba3.{name}")


@trial(MAMBA, f"{_AT}/mamba3/angle_dt.py", "its forward and backward functions; inline PTX")
def angle_dt(run: Run) -> None:
    from_file = third(run, "angle_dt")
    angle, dt, first, slope = run.randn(2, 40, 3, 8), run.rand(2, 3, 40), run.randn(2, 3, 8), run.randn(2, 40, 3, 8)
    got, last = from_file.angle_dt_fwd(angle, dt, first, chunk_size=16, return_output_state=True)
    a, d, f = (x.cpu().requires_grad_() for x in (angle, dt, first))
    want = (tt.tanh(a) * math.pi * d.permute(0, 2, 1)[..., None]).cumsum(1) + f[:, None]
    for turn in (tt.sin, tt.cos):  # each is an angle: a whole turn more is the same
        run.close((turn(got), turn(last)), (turn(want.detach()), turn(want[:, -1].detach())))
    want.backward(slope.cpu())
    run.close(from_file.angle_dt_bwd(slope, angle, dt, True, chunk_size=16), (a.grad, d.grad, f.grad))


def _turned(x: tt.Tensor, angle: tt.Tensor) -> tt.Tensor:
    """Pairs of neighbours turned by an angle each."""
    x0, x1 = x[..., 0::2], x[..., 1::2]
    sin, cos = tt.sin(angle), tt.cos(angle)
    return tt.stack((x0 * cos - x1 * sin, x0 * sin + x1 * cos), -1).flatten(-2)


@trial(MAMBA, f"{_AT}/mamba3/mamba3_siso_step.py", "one step, gated and not; inline PTX; a product in bfloat16")
def mamba3_step(run: Run) -> None:
    step = third(run, "mamba3_siso_step").mamba3_siso_step
    q, k, v, adt, dt, trap = (*(run.randn(2, 2, 32) for _ in "qk"), run.randn(2, 4, 16), -run.rand(2, 4), run.rand(2, 4), run.randn(2, 4))
    qb, kb, turn, skip, z = run.randn(4, 32), run.randn(4, 32), run.randn(2, 4, 16), run.randn(4), run.randn(2, 4, 16)
    states = run.randn(2, 4, 16), run.randn(2, 4, 16, 32), run.randn(2, 4, 32), run.randn(2, 4, 16)
    for d, gate in ((skip, z), (None, None)):
        out, (angle, state, last_k, last_v) = step(q, k, v, adt, dt, trap, qb, kb, turn, d, gate, states)
        want = tt.tanh(turn.cpu()) * math.pi * dt.cpu()[..., None] + states[0].cpu()
        run.close((tt.sin(angle), tt.cos(angle)), (tt.sin(want), tt.cos(want)))
        queries, keys = (_turned(x.cpu().repeat_interleave(2, 1) + b.cpu(), want) for x, b in ((q, qb), (k, kb)))
        decay, mix, time = tt.exp(adt.cpu())[..., None, None], tt.sigmoid(trap.cpu())[..., None, None], dt.cpu()[..., None, None]
        before = states[3].cpu()[..., None] * states[2].cpu()[..., None, :]
        sums = states[1].cpu() * decay + decay * time * (1 - mix) * before + mix * time * v.cpu()[..., None] * keys[..., None, :]
        run.close((state, last_k, last_v), (sums, keys, v.cpu()))
        y = (sums * queries[..., None, :]).sum(-1) + (0 if d is None else d.cpu()[:, None] * v.cpu())
        run.close(out, y if gate is None else y * F.silu(gate.cpu()), 2e-2)
