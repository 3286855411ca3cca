"""FlagGems: PyTorch's operators, with a generator of pointwise kernels and wrappers of its own around Triton's launch and autotuner."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import types
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import FLAG_GEMS, VERSION
from tests.other_kernels.trial import Run, trial

F = tt.nn.functional
_AT = "src/flag_gems"


def ops(run: Run, path: str) -> Any:
    """One file of flag_gems. The package's own file, which registers every operator with PyTorch's dispatcher, stands aside, and so do the lists of
    operators in ops/ and fused/."""
    import torch

    torch.complex32 = None  # a table of accumulators has a line for it; no tensor here is of that type
    os.environ["GEMS_VENDOR"] = "nvidia"
    os.environ.setdefault("FLAGGEMS_CACHE_DIR", tempfile.mkdtemp())
    for package in ("flag_gems", "flag_gems.ops", "flag_gems.fused"):
        if package not in sys.modules:
            bare: Any = types.ModuleType(package)
            bare.__path__ = [str(run.folder / "src" / package.replace(".", "/"))]
            bare.device, bare.vendor_name = "cuda", "nvidia"
            sys.modules[package] = bare
    if VERSION >= (3, 9):  # which has no block pointers any more: the project has a setting for it
        from flag_gems.utils.codegen_config_utils import get_codegen_config

        get_codegen_config().prefer_block_pointer = False
    return importlib.import_module(f"flag_gems.{path}")


@trial(FLAG_GEMS, f"{_AT}/ops/softmax.py", "the last dimension and another; forward and backward")
def softmax(run: Run) -> None:
    from_file = ops(run, "ops.softmax")
    for shape, dim in (((5, 130), 1), ((4, 60, 7), 1)):
        x, g = run.randn(*shape), run.randn(*shape)
        leaf = x.cpu().requires_grad_()
        want = leaf.softmax(dim)
        want.backward(g.cpu())
        y = from_file.softmax(x, dim)
        run.close(y, want, 1e-6)
        run.close(from_file.softmax_backward(g, y, dim, tt.float32), leaf.grad, 1e-6)


@trial(FLAG_GEMS, f"{_AT}/ops/layernorm.py")
def layer_norm(run: Run) -> None:
    from_file = ops(run, "ops.layernorm")
    x, w, b, g = run.randn(6, 80), run.randn(80), run.randn(80), run.randn(6, 80)
    leaves = [t.cpu().requires_grad_() for t in (x, w, b)]
    want = F.layer_norm(leaves[0], (80,), *leaves[1:], 1e-5)
    want.backward(g.cpu())
    y, mean, rstd = from_file.layer_norm(x, (80,), w, b, 1e-5)
    run.close(y, want)
    got = from_file.layer_norm_backward(g, x, (80,), mean, rstd, w, b, [True, True, True])
    run.close(got, tuple(t.grad for t in leaves))


@trial(FLAG_GEMS, f"{_AT}/ops/rms_norm.py")
def rms_norm(run: Run) -> None:
    norm = ops(run, "ops.rms_norm").rms_norm
    run.same(lambda x, w: norm(x, (80,), w, 1e-6), lambda x, w: F.rms_norm(x, (80,), w, 1e-6), run.randn(6, 80), run.randn(80))


@trial(FLAG_GEMS, f"{_AT}/ops/groupnorm.py")
def group_norm(run: Run) -> None:
    from_file = ops(run, "ops.groupnorm")
    x, w, b = run.randn(2, 6, 20), run.randn(6), run.randn(6)
    run.close(from_file.group_norm(x, w, b, 2, 6, 20, 3, 1e-5)[0], F.group_norm(x.cpu(), 3, w.cpu(), b.cpu(), 1e-5))


@trial(
    FLAG_GEMS, f"{_AT}/ops/mm.py", "hands a tuple to cuda.get_device_capability (mm.py:187), for which PyTorch takes the current GPU",
    finding="is not a device",
)  # fmt: skip
def mm(run: Run) -> None:
    a, b = run.randn(70, 100, dtype=tt.float16), run.randn(100, 90, dtype=tt.float16)
    run.close(ops(run, "ops.mm").mm(a, b), a.cpu().float() @ b.cpu().float(), 2e-3)


@trial(FLAG_GEMS, f"{_AT}/ops/bmm.py", "the project's own tuner", seconds=600)
def bmm(run: Run) -> None:
    a, b = run.randn(3, 40, 50, dtype=tt.float16), run.randn(3, 50, 30, dtype=tt.float16)
    run.close(ops(run, "ops.bmm").bmm(a, b), a.cpu().float() @ b.cpu().float(), 2e-3)


@trial(FLAG_GEMS, f"{_AT}/ops/addmm.py", seconds=600)
def addmm(run: Run) -> None:
    c, a, b = run.randn(40, dtype=tt.float16), run.randn(30, 50, dtype=tt.float16), run.randn(50, 40, dtype=tt.float16)
    run.close(ops(run, "ops.addmm").addmm(c, a, b), c.cpu().float() + a.cpu().float() @ b.cpu().float(), 2e-3)


@trial(FLAG_GEMS, f"{_AT}/ops/gelu.py", "kernels that the project writes into files as it runs")
def gelu(run: Run) -> None:
    from_file = ops(run, "ops.gelu")
    x, g = run.randn(5, 60), run.randn(5, 60)
    for form in ("none", "tanh"):
        leaf = x.cpu().requires_grad_()
        want = F.gelu(leaf, approximate=form)
        want.backward(g.cpu())
        run.close(from_file.gelu(x, approximate=form), want)
        run.close(from_file.gelu_backward(g, x, approximate=form), leaf.grad)


@trial(FLAG_GEMS, f"{_AT}/fused/silu_and_mul.py", "generated")
def silu_and_mul(run: Run) -> None:
    f = ops(run, "fused.silu_and_mul").silu_and_mul
    run.same(f, lambda a, b: F.silu(a) * b, run.randn(5, 60), run.randn(5, 60))


@trial(FLAG_GEMS, f"{_AT}/fused/cross_entropy_loss.py")
def cross_entropy_loss(run: Run) -> None:
    f = ops(run, "fused.cross_entropy_loss").cross_entropy_loss
    how = "mean" if run.numbers else "sum"  # the mean divides by a number that it reads from the device
    run.same(
        lambda x, t: f(x, t, reduction=how), lambda x, t: F.cross_entropy(x, t, reduction=how), run.randn(9, 50), run.randint(50, (9,))
    )


@trial(FLAG_GEMS, f"{_AT}/fused/rotary_embedding.py")
def rotary_embedding(run: Run) -> None:
    f = ops(run, "fused.rotary_embedding").apply_rotary_pos_emb
    angles = tt.outer(tt.arange(8).float(), 1.0 / 10000 ** (tt.arange(16).float() / 16))
    q, k = run.randn(2, 8, 4, 32), run.randn(2, 8, 2, 32)
    rows = tt.arange(8).repeat(2, 1).cuda()

    def turned(x: tt.Tensor) -> tt.Tensor:
        a, b = x.cpu().chunk(2, -1)
        cos, sin = (tt.cat([t, t], -1)[:, None] for t in (angles.cos(), angles.sin()))
        return x.cpu() * cos + tt.cat([-b, a], -1) * sin

    run.close(f(q, k, angles.cos().cuda(), angles.sin().cuda(), rows), (turned(q), turned(k)))


@trial(FLAG_GEMS, f"{_AT}/ops/cumsum.py")
def cumsum(run: Run) -> None:
    f = ops(run, "ops.cumsum").cumsum
    x = run.randn(4, 300)
    run.close(f(x, 1), x.cpu().cumsum(1))
    run.close(f(x, 0), x.cpu().cumsum(0))


@trial(FLAG_GEMS, f"{_AT}/ops/sort.py", "a radix sort")
def sort(run: Run) -> None:
    x = run.randn(3, 200)
    want = x.cpu().sort(-1, stable=True)
    run.close(ops(run, "ops.sort").sort_stable(x, stable=True, dim=-1), (want[0], want[1]), 0.0)


@trial(FLAG_GEMS, f"{_AT}/ops/topk.py")
def topk(run: Run) -> None:
    x = run.randn(3, 200)
    want = x.cpu().topk(5)
    run.close(ops(run, "ops.topk").topk(x, 5), (want[0], want[1]), 0.0)


@trial(FLAG_GEMS, f"{_AT}/ops/argmax.py")
def argmax(run: Run) -> None:
    f, x = ops(run, "ops.argmax").argmax, run.randn(7, 150)
    run.close(f(x, 1), x.cpu().argmax(1), 0.0)
    run.close(f(x), x.cpu().argmax(), 0.0)


@trial(FLAG_GEMS, f"{_AT}/ops/var_mean.py", "Welford's scan as a combine function of tl.reduce")
def var_mean(run: Run) -> None:
    f, x = ops(run, "ops.var_mean").var_mean, run.randn(6, 70)
    run.close(f(x, [1]), tt.var_mean(x.cpu(), 1))


@trial(FLAG_GEMS, f"{_AT}/ops/vector_norm.py")
def vector_norm(run: Run) -> None:
    f, x = ops(run, "ops.vector_norm").vector_norm, run.randn(6, 70)
    run.close(f(x, 2, [1]), tt.linalg.vector_norm(x.cpu(), 2, 1))


@trial(FLAG_GEMS, f"{_AT}/ops/index_select.py")
def index_select(run: Run) -> None:
    x, i = run.randn(9, 40), run.randint(9, (5,))
    run.close(ops(run, "ops.index_select").index_select(x, 0, i), x.cpu().index_select(0, i.cpu()), 0.0)


@trial(
    FLAG_GEMS, f"{_AT}/ops/gather.py",
    "generated; the kernel is given a view of a stride of 0 and reads beyond its elements, within the memory of the tensor that it is a view of",
    finding="load of inp",
)  # fmt: skip
def gather(run: Run) -> None:
    x, i = run.randn(9, 40), run.randint(9, (5, 40))
    run.close(ops(run, "ops.gather").gather(x, 0, i), x.cpu().gather(0, i.cpu()), 0.0)


@trial(FLAG_GEMS, f"{_AT}/ops/conv2d.py", seconds=600)
def conv2d(run: Run) -> None:
    f = ops(run, "ops.conv2d").conv2d
    run.same(
        lambda x, w, b: f(x, w, b, 1, 1), lambda x, w, b: F.conv2d(x, w, b, 1, 1), run.randn(2, 4, 8, 8), run.randn(6, 4, 3, 3), run.randn(6),
        tolerance=1e-3,
    )  # fmt: skip


@trial(FLAG_GEMS, f"{_AT}/ops/attention.py", "forward", seconds=600)
def attention(run: Run) -> None:
    q, k, v = (run.randn(1, 2, 64, 64, dtype=tt.float16) for _ in range(3))
    got = ops(run, "ops.attention").scaled_dot_product_attention(q, k, v)
    run.close(got[0] if isinstance(got, tuple) else got, F.scaled_dot_product_attention(*(t.cpu().float() for t in (q, k, v))), 2e-3)
