"""lightllm: kernels of a server of language models, each file alone: key-value caches, attention over requests of several lengths, int8."""

from __future__ import annotations

import importlib
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import LIGHTLLM
from tests.other_kernels.trial import Run, bare, trial

F = tt.nn.functional
_LLAMA = "lightllm/models/llama/triton_kernel"
_BASE = "lightllm/common/basemodel/triton_kernel"


def kernels(run: Run, path: str) -> Any:
    """One file of lightllm, by its path in the project. The packages above it are empty stand-ins."""
    name = path.removesuffix(".py").replace("/", ".")
    parts = name.split(".")[:-1]
    bare(run.folder, *(".".join(parts[: i + 1]) for i in range(len(parts))), "lightllm.utils")
    return importlib.import_module(name)


@trial(LIGHTLLM, f"{_LLAMA}/rmsnorm.py", "float32 and float16")
def rmsnorm(run: Run) -> None:
    norm = kernels(run, f"{_LLAMA}/rmsnorm.py").rmsnorm_forward
    x, w = run.randn(5, 90), run.randn(90)
    run.close(norm(x, w, 1e-6), F.rms_norm(x.cpu(), (90,), w.cpu(), 1e-6))
    run.close(norm(x.half(), w.half(), 1e-6), F.rms_norm(x.cpu(), (90,), w.cpu(), 1e-6), 2e-3)


@trial(LIGHTLLM, f"{_LLAMA}/silu_and_mul.py")
def silu_and_mul(run: Run) -> None:
    x, out = run.randn(5, 2 * 90), run.randn(5, 90)
    kernels(run, f"{_LLAMA}/silu_and_mul.py").silu_and_mul_fwd(x, out)
    run.close(out, F.silu(x.cpu()[:, :90]) * x.cpu()[:, 90:])


@trial(LIGHTLLM, f"{_LLAMA}/rotary_emb.py", "in place, part of each head")
def rotary_emb(run: Run) -> None:
    turn = kernels(run, f"{_LLAMA}/rotary_emb.py").rotary_emb_fwd
    angles = tt.outer(tt.arange(11).float(), 1.0 / 100 ** (tt.arange(16).float() / 16)).unsqueeze(1)
    q, k = run.randn(11, 6, 64), run.randn(11, 2, 64)

    def plain(x: tt.Tensor) -> tt.Tensor:
        a, b = x[..., :16], x[..., 16:32]
        return tt.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos(), x[..., 32:]], -1)

    want = plain(q.cpu()), plain(k.cpu())
    turn(q, k, angles.cos().squeeze(1).cuda(), angles.sin().squeeze(1).cuda(), 0.5)
    run.close((q, k), want, 1e-6)


class Requests:
    """What the project's attention takes of a batch: which rows of the cache each request has, and how many."""

    def __init__(self, run: Run, lengths: list[int], width: int) -> None:
        rows = tt.randperm(len(lengths) * width).reshape(len(lengths), width).to(tt.int32)
        self.req_to_token_indexs, self.req_manager = rows.cuda(), self
        self.batch_size, self.max_len_in_batch = len(lengths), width
        self.b_req_idx = tt.arange(len(lengths), dtype=tt.int32).cuda()
        self.b_seq_len = tt.tensor(lengths, dtype=tt.int32).cuda()
        self.rows = [rows[i, :n].long() for i, n in enumerate(lengths)]


@trial(LIGHTLLM, f"{_LLAMA}/flash_decoding.py", "one token of each request against its rows of the cache, grouped heads")
def flash_decoding(run: Run) -> None:
    decode = kernels(run, f"{_LLAMA}/flash_decoding.py").token_decode_attention_flash_decoding
    info = Requests(run, [5, 300], 300)
    q, k, v = run.randn(2, 4, 32), run.randn(600, 2, 32), run.randn(600, 2, 32)
    want = []
    for i, rows in enumerate(info.rows):
        keys, values = (t.cpu()[rows].repeat_interleave(2, 1).transpose(0, 1) for t in (k, v))
        scores = (keys @ q.cpu()[i].unsqueeze(-1)).squeeze(-1) / 32**0.5
        want.append((scores.softmax(-1).unsqueeze(1) @ values).squeeze(1))
    run.close(decode(q, info, 4, 32, k, v, out=tt.empty_like(q), alloc_tensor_func=tt.empty), tt.stack(want), 1e-4)


@trial(LIGHTLLM, f"{_BASE}/destindex_copy_kv.py", "into the rows that a request has, as they are and as int8")
def destindex_copy_kv(run: Run) -> None:
    from_file = kernels(run, f"{_BASE}/destindex_copy_kv.py")
    k, at = run.randn(6, 3, 64, dtype=tt.float16), tt.tensor([9, 2, 0, 7, 4, 5]).to(tt.int32).cuda()
    out = run.randn(10, 3, 64, dtype=tt.float16)
    want = out.cpu()
    want[at.cpu().long()] = k.cpu()
    from_file.destindex_copy_kv(k, at, out)
    run.close(out, want, 0.0)
    q, scale = tt.zeros(10, 3, 64, dtype=tt.int8).cuda(), tt.zeros(10, 3, 1, dtype=tt.float16).cuda()
    from_file.destindex_copy_quantize_kv(k, at, q, scale)
    back = q.cpu().float() * scale.cpu().float()
    run.close(back[at.cpu().long()], k.cpu().float(), 2e-2)


@trial(LIGHTLLM, f"{_BASE}/quantize_gemm_int8.py", "rows as int8, and the product of int8 matrices")
def quantize_gemm_int8(run: Run) -> None:
    from_file = kernels(run, f"{_BASE}/quantize_gemm_int8.py")
    a, b = run.randn(32, 128), run.randn(128, 64)
    q, scale = from_file.quantize_int8_perrow(a)
    run.close(q.float().cpu() * scale.cpu().unsqueeze(1), a.cpu(), 1e-2)
    qb, sb = from_file.quantize_int8(b)
    want = (q.cpu().float() @ qb.cpu().float()) * scale.cpu().unsqueeze(1) * sb.cpu()
    run.close(from_file.matmul_int8(q, scale, qb, sb).float(), want, 2e-3)


@trial(LIGHTLLM, "lightllm/common/fused_moe/softmax_topk.py", "the experts of a token")
def softmax_topk(run: Run) -> None:
    pick = kernels(run, "lightllm/common/fused_moe/softmax_topk.py").softmax_topk
    x = run.randn(7, 20)
    value, at = x.cpu().softmax(-1).topk(4)
    got = pick(x, 4)
    run.close(got, (value, at), 1e-6)
    run.close(pick(x, 4, True)[0], value / value.sum(-1, keepdim=True), 1e-6)


@trial(LIGHTLLM, f"{_LLAMA}/embedding.py", "a part of the words")
def embedding(run: Run) -> None:
    ids, w = run.randint(40, (9,)), run.randn(20, 48)
    out = run.randn(9, 48)
    kernels(run, f"{_LLAMA}/embedding.py").embedding(ids, w, 10, 30, out)
    here = ids.cpu()
    inside = (here >= 10) & (here < 30)
    run.close(out, tt.where(inside.unsqueeze(1), w.cpu()[(here - 10).clamp(0, 19)], tt.zeros(9, 48)), 0.0)
