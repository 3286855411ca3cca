"""bitsandbytes: numbers of 4 and 8 bits in blocks, and optimizers whose state is kept so."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import BITSANDBYTES
from tests.other_kernels.trial import Run, trial

_AT = "bitsandbytes/backends/triton"
STANDS_IN = "its package stands aside"


def kernels(run: Run, name: str) -> Any:
    """One file of the Triton backend. The package's own file, which loads its CUDA library, stands aside."""
    for package in ("bitsandbytes", "bitsandbytes.backends", "bitsandbytes.backends.triton"):
        if package not in sys.modules:
            bare: Any = types.ModuleType(package)
            bare.__path__ = [str(run.folder / package.replace(".", "/"))]
            sys.modules[package] = bare
    return importlib.import_module(f"bitsandbytes.backends.triton.{name}")


@trial(BITSANDBYTES, f"{_AT}/kernels_4bit.py", STANDS_IN + "; NF4 and FP4: quantised, back, and a product with a row")
def four_bits(run: Run) -> None:
    ops = kernels(run, "ops")
    tables = importlib.import_module("bitsandbytes.backends.utils").CODE
    x, row = run.randn(16, 64), run.randn(1, 64)
    for kind in ("nf4", "fp4"):
        packed, scales = ops.quantize_4bit(x, 64, kind, tt.uint8)
        back = ops.dequantize_4bit(packed, scales, 64, kind, (16, 64), tt.float32)
        table, top = tables[kind].cpu(), x.cpu().abs().amax(1)
        nearest = ((x.cpu() / top.unsqueeze(1)).unsqueeze(-1) - table).abs().argmin(-1)
        run.close(scales.reshape(-1), top)
        run.close(back, table[nearest] * top.unsqueeze(1), 2e-4)
        product = ops.gemv_4bit(row, packed, (16, 64), scales, table.cuda(), 64)
        run.close(product, row.cpu() @ back.cpu().T, 1e-3)


@trial(BITSANDBYTES, f"{_AT}/kernels_8bit_quant.py", STANDS_IN)
def eight_bits(run: Run) -> None:
    ops = kernels(run, "ops")
    x, table = run.randn(4, 256), tt.linspace(-1, 1, 256)
    codes, scales = ops.quantize_blockwise(x, table.cuda(), 256)
    back = ops.dequantize_blockwise(codes, scales, table.cuda(), 256, tt.float32)
    run.close(scales, x.cpu().abs().amax(1))
    run.close(back, table[codes.cpu().long()] * scales.cpu().unsqueeze(1))
    run.close(back, x.cpu(), 5e-3)


@trial(BITSANDBYTES, f"{_AT}/kernels_optim.py", STANDS_IN + "; AdamW and Lion")
def optimizers(run: Run) -> None:
    update = kernels(run, "kernels_optim").optimizer_update_32bit_impl
    p, g = run.randn(600), run.randn(600)
    m, v = tt.zeros_like(p), tt.zeros_like(p)
    leaf = p.cpu().clone().requires_grad_()
    adamw = tt.optim.AdamW([leaf], lr=1e-2, weight_decay=0.1)
    for step in (1, 2):
        leaf.grad = g.cpu()
        adamw.step()
        update("adam", g, p, m, v, None, 0.0, 0.0, 0.9, 0.999, 0.0, 0.0, 1e-8, 0.1, step, 1e-2)
    run.close(p, leaf, 1e-5)
    p, m = run.randn(600), tt.zeros_like(p)
    want = p.cpu() - 1e-2 * g.cpu().sign()
    update("lion", g, p, m, None, None, 0.0, 0.0, 0.9, 0.99, 0.0, 0.0, 1e-8, 0.0, 1, 1e-2)
    run.close((p, m), (want, 0.01 * g.cpu()), 1e-5)
