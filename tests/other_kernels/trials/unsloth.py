"""unsloth: the kernels of its fine-tuning, their files alone, since the package itself wants transformers and other libraries."""

from __future__ import annotations

import importlib
import logging
import sys
import types
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import UNSLOTH
from tests.other_kernels.trial import Run, trial

F = tt.nn.functional
_AT = "unsloth/kernels"
STANDS_IN = "its package stands aside; unsloth_zoo and transformers are stand-ins that hold names"


def _same(*args: Any, **_: Any) -> Any:
    """A decorator that changes nothing."""
    return args[0] if args and callable(args[0]) else _same


def kernels(run: Run, name: str) -> Any:
    """One file of unsloth/kernels. What it imports beside torch and Triton for other ends than its kernels is given by name alone."""
    from packaging.version import Version

    class LlamaRMSNorm(tt.nn.Module):
        """The class that a patch derives from; nothing here makes one."""

    log = logging.getLogger("unsloth")
    held: dict[str, dict[str, Any]] = {
        "unsloth_zoo.utils": {"Version": lambda text: Version(str(text).partition("+")[0])},
        "unsloth_zoo.log": {"logger": log},
        "unsloth_zoo.temporary_patches.common": {"torch_compile": _same},
        "unsloth_zoo.patching_utils": {"patch_layernorm": _same},
        "unsloth_zoo.loss_utils": {"patch_loss_functions": _same, "post_patch_loss_function": _same},
        "transformers.models.llama.modeling_llama": {"LlamaRMSNorm": LlamaRMSNorm, "logger": log},
    }
    for path, names in held.items():
        parts = path.split(".")
        for i in range(1, len(parts) + 1):
            at = ".".join(parts[:i])
            module = sys.modules.setdefault(at, types.ModuleType(at))
            module.__path__ = []
        vars(sys.modules[path]).update(names)
    for package in ("unsloth", "unsloth.kernels"):
        if package not in sys.modules:
            bare: Any = types.ModuleType(package)
            sys.modules[package] = bare
            bare.__path__ = [str(run.folder / package.replace(".", "/"))]
    return importlib.import_module(f"unsloth.kernels.{name}")


class Norm:
    """What the project takes of a normalisation layer."""

    elementwise_affine, variance_epsilon = True, 1e-6

    def __init__(self, weight: Any, bias: Any = None) -> None:
        self.weight, self.bias = weight, bias


@trial(UNSLOTH, f"{_AT}/rms_layernorm.py", STANDS_IN + "; Llama's and Gemma's")
def rms_layernorm(run: Run) -> None:
    fast = kernels(run, "rms_layernorm").fast_rms_layernorm
    x, w = run.randn(2, 3, 80), run.randn(80)
    run.same(lambda x: fast(Norm(w), x * 1.0), lambda x: F.rms_norm(x, (80,), w.cpu(), 1e-6), x)
    run.same(lambda x: fast(Norm(w), x * 1.0, True), lambda x: F.rms_norm(x, (80,), w.cpu() + 1, 1e-6), x)


@trial(UNSLOTH, f"{_AT}/layernorm.py", STANDS_IN)
def layernorm(run: Run) -> None:
    fast = kernels(run, "layernorm").fast_layernorm
    w, b = run.randn(80), run.randn(80)
    run.same(lambda x: fast(Norm(w, b), x * 1.0), lambda x: F.layer_norm(x, (80,), w.cpu(), b.cpu(), 1e-6), run.randn(2, 3, 80))


@trial(UNSLOTH, f"{_AT}/swiglu.py", STANDS_IN)
def swiglu(run: Run) -> None:
    from_file = kernels(run, "swiglu")
    _gated(run, F.silu, from_file.swiglu_fg_kernel, from_file.swiglu_DWf_DW_dfg_kernel)


@trial(UNSLOTH, f"{_AT}/geglu.py", STANDS_IN + "; exact and by tanh")
def geglu(run: Run) -> None:
    from_file = kernels(run, "geglu")
    _gated(run, F.gelu, from_file.geglu_exact_forward_kernel, from_file.geglu_exact_backward_kernel)
    _gated(run, lambda x: F.gelu(x, approximate="tanh"), from_file.geglu_approx_forward_kernel, from_file.geglu_approx_backward_kernel)


def _gated(run: Run, act: Any, forward: Any, backward: Any) -> None:
    """f(e) g and its gradients, which the project's backward writes over its inputs: (h, df, de)."""
    e, g, dw = run.randn(2, 5, 48), run.randn(2, 5, 48), run.randn(10, 48)
    run.close(forward(e, g), act(e.cpu()) * g.cpu(), 1e-5)
    leaf = e.cpu().reshape(10, 48).requires_grad_()
    flat, up = g.cpu().reshape(10, 48), dw.cpu()
    f = act(leaf)
    (slope,) = tt.autograd.grad(f, leaf, up * flat)
    got = backward(dw.clone(), e.reshape(10, 48).clone(), g.reshape(10, 48).clone())
    run.close(got, (f.detach() * flat, up * f.detach(), slope), 1e-5)


@trial(UNSLOTH, f"{_AT}/cross_entropy_loss.py", STANDS_IN + "; whole rows, and rows in chunks above 65,536 classes", seconds=600)
def cross_entropy_loss(run: Run) -> None:
    loss = kernels(run, "cross_entropy_loss").fast_cross_entropy_loss
    labels = run.randint(90, (2, 4))
    labels[1, 2] = -100

    def plain(x: tt.Tensor) -> tt.Tensor:
        return F.cross_entropy(x.reshape(-1, x.shape[-1]), labels.cpu().reshape(-1), ignore_index=-100)

    run.same(lambda x: loss(x * 1.0, labels), plain, run.randn(2, 4, 90))
    run.same(lambda x: loss(x * 1.0, labels, 30.0), lambda x: plain(30.0 * tt.tanh(x / 30.0)), run.randn(2, 4, 90))
    run.same(lambda x: loss(x * 1.0, labels), plain, run.randn(2, 4, 65_600))


@trial(UNSLOTH, f"{_AT}/rope_embedding.py", STANDS_IN)
def rope_embedding(run: Run) -> None:
    fast = kernels(run, "rope_embedding").fast_rope_embedding
    angles = tt.outer(tt.arange(8).float(), 1.0 / 10000 ** (tt.arange(16).float() / 16))
    angles = tt.cat([angles, angles], -1)

    def turned(x: tt.Tensor) -> tt.Tensor:
        a, b = x.chunk(2, -1)
        return x * angles.cos() + tt.cat([-b, a], -1) * angles.sin()

    cos, sin = angles.cos().cuda(), angles.sin().cuda()
    q, k = run.randn(2, 4, 8, 32), run.randn(2, 4, 8, 32)
    run.same(lambda q, k: fast(q * 1.0, k * 1.0, cos, sin), lambda q, k: (turned(q), turned(k)), q, k)
    rows = (tt.arange(16) % 8).to(tt.int32).cuda()
    run.same(lambda q, k: fast(q * 1.0, k * 1.0, cos, sin, rows), lambda q, k: (turned(q), turned(k)), q, k)


@trial(UNSLOTH, f"{_AT}/fp8.py", STANDS_IN + "; float8 blocks: quantised, and back")
def fp8_blocks(run: Run) -> None:
    from_file = kernels(run, "fp8")
    x = run.randn(8, 256)
    q, s = from_file.act_quant(x, 128)
    blocks = x.cpu().reshape(8, 2, 128)
    scale = blocks.abs().amax(-1) / 448.0
    run.close(s, scale, 1e-6)
    run.close((q.float().cpu().reshape(8, 2, 128) * scale.unsqueeze(-1)).reshape(8, 256), x.cpu(), 0.05)
    w, ws = run.randn(128, 256).to(tt.float8_e4m3fn), run.rand(1, 2) + 0.5
    wide = ws.cpu().repeat_interleave(128, 0).repeat_interleave(128, 1)
    run.close(from_file.weight_dequant_block(w, ws, 128, tt.float32), w.cpu().float() * wide, 1e-6)
