"""Triton's own tutorials: run as they are where they are small, else their functions called with smaller shapes."""

from __future__ import annotations

import runpy
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import TRITON, VERSION
from tests.other_kernels.trial import Run, definitions, trial

_AT = "python/tutorials"


def whole(run: Run, file: str) -> dict[str, Any]:
    """Run a tutorial to its end; the names that it leaves."""
    return runpy.run_path(str(run.folder / _AT / file), run_name="__main__")


def parts(run: Run, file: str, until: str = "") -> dict[str, Any]:
    """A tutorial's functions (see definitions)."""
    return definitions(run.folder / _AT / file, until)


@trial(TRITON, f"{_AT}/01-vector-add.py", "run to its end")
def vector_add(run: Run) -> None:
    names = whole(run, "01-vector-add.py")
    run.close(names["output_triton"], names["output_torch"], 0.0)
    x, y = run.randn(1027), run.randn(1027)
    run.close(names["add"](x, y), x.cpu() + y.cpu(), 0.0)


@trial(TRITON, f"{_AT}/02-fused-softmax.py", "183 x 78 in place of 1823 x 781")
def fused_softmax(run: Run) -> None:
    names = parts(run, "02-fused-softmax.py", until="torch.manual_seed(0)")
    x = run.randn(183, 78)
    run.close(names["softmax"](x), x.cpu().softmax(1), 1e-6)


@trial(TRITON, f"{_AT}/03-matrix-multiplication.py", "run to its end, float16 and float8")
def matrix_multiplication(run: Run) -> None:
    names = whole(run, "03-matrix-multiplication.py")
    run.close(names["triton_output"], names["torch_output"], 1e-2)
    a, b = run.randn(70, 100, dtype=tt.float16), run.randn(100, 90, dtype=tt.float16)
    run.close(names["matmul"](a, b), a.cpu().float() @ b.cpu().float(), 1e-3)


@trial(TRITON, f"{_AT}/04-low-memory-dropout.py", "run to its end")
def low_memory_dropout(run: Run) -> None:
    names = whole(run, "04-low-memory-dropout.py")
    seeded, x = names["seeded_dropout"], run.randn(3000)
    one, two, other = seeded(x, p=0.5, seed=123), seeded(x, p=0.5, seed=123), seeded(x, p=0.5, seed=512)
    run.close(one, two, 0.0)
    kept = one.cpu() != 0
    run.close(one, tt.where(kept, x.cpu() * 2, tt.zeros(3000)), 1e-6)
    if run.numbers:
        assert 0.45 < float(kept.float().mean()) < 0.55
        assert not bool((one == other).all())


@trial(TRITON, f"{_AT}/05-layer-norm.py", "its own test, on 151 x 781 in place of 1151 x 8192")
def layer_norm(run: Run) -> None:
    names = parts(run, "05-layer-norm.py")
    if run.numbers:  # it asserts them
        names["test_layer_norm"](151, 781, tt.float16)
    x, w, b = run.randn(37, 100), run.randn(100), run.randn(100)
    run.same(
        lambda x, w, b: names["layer_norm"](x, (100,), w, b, 1e-5),
        lambda x, w, b: tt.nn.functional.layer_norm(x, (100,), w, b, 1e-5),
        x,
        w,
        b,
    )


@trial(
    TRITON,
    f"{_AT}/06-fused-attention.py",
    "its own test on 1 x 2 x 128 x 64, forward and backward, causal or not, float16 and float8",
    seconds=600,
)
def fused_attention(run: Run) -> None:
    names = parts(run, "06-fused-attention.py")
    test = names["test_op"]
    for causal in (True, False):
        for mode, provider in (("bwd", "triton-fp16"), ("fwd", "triton-fp8")):  # "bwd" runs and compares the forward kernel too
            test(1, 2, 128, 64, causal, False, mode, provider)
    run.compared += 1


@trial(TRITON, f"{_AT}/07-extern-functions.py", "run to its end")
def extern_functions(run: Run) -> None:
    names = whole(run, "07-extern-functions.py")
    run.close(names["output_triton"], names["output_torch"], 1e-6)


@trial(TRITON, f"{_AT}/08-grouped-gemm.py", "both kernels on two small groups; tensor descriptors are made in the kernel", seconds=600)
def grouped_gemm(run: Run) -> None:
    names = parts(run, "08-grouped-gemm.py", until="group_m =")
    shapes = [(128, 256, 64), (256, 128, 128)]  # the kernels assume full tiles
    a = [run.randn(m, k, dtype=tt.float16) for m, n, k in shapes]
    b = [run.randn(k, n, dtype=tt.float16) for m, n, k in shapes]
    wanted = [x.cpu().float() @ y.cpu().float() for x, y in zip(a, b, strict=True)]
    run.close(names["group_gemm_fn"](a, b), wanted, 1e-3)
    run.close(names["group_gemm_tma_fn"](a, [y.t().contiguous() for y in b]), wanted, 1e-3)


def without_cublas() -> None:
    """cuBLAS, which the tutorial compares its speed with, stands aside: it opens a GPU's library as soon as it is made."""
    from triton._C.libtriton import nvidia

    nvidia.cublas.CublasLt = lambda workspace: None


@trial(
    TRITON,
    f"{_AT}/09-persistent-matmul.py",
    "each variant but the one for sm_100, float16 and float8; cuBLAS, which it compares with, stands aside",
    seconds=600,
)
def persistent_matmul(run: Run) -> None:
    without_cublas()
    names = parts(run, "09-persistent-matmul.py")
    a, b = run.randn(256, 128, dtype=tt.float16), run.randn(128, 128, dtype=tt.float16)
    for dtype, tolerance in ((tt.float16, 1e-3), (tt.float8_e4m3fn, 0.1)):
        x, y = a.to(dtype), b.to(dtype)
        wanted = x.cpu().float() @ y.cpu().float().t()
        run.close(names["matmul"](x, y.t()).float(), wanted, tolerance)
        run.close(names["matmul_persistent"](x, y.t()).float(), wanted, tolerance)
        for variant in ("matmul_tma", "matmul_tma_persistent", "matmul_descriptor_persistent"):
            run.close(names[variant](x, y, False).float(), wanted, tolerance)
        run.close(names["matmul_descriptor_persistent"](x, y, True).float(), wanted, tolerance)


@trial(TRITON, f"{_AT}/10-block-scaled-matmul.py", "its own validation, each format, 256 x 256 x 256", seconds=600)
def block_scaled_matmul(run: Run) -> None:
    names = parts(run, "10-block-scaled-matmul.py")
    # Triton 3.6 ends in "PassManager::run failed" for products of e4m3 scales on anything but sm_100, which the tutorial is for; 3.9 unfolds them.
    for form in ("mxfp4", "mxfp8", "mixed") if VERSION < (3, 7) and not run.numbers else ("mxfp4", "nvfp4", "mxfp8", "mixed"):
        names["validate_block_scaled"](256, 256, 256, form)
        run.compared += 1


@trial(TRITON, f"{_AT}/11-programmatic-dependent-launch.py", "run to its end")
def programmatic_dependent_launch(run: Run) -> None:
    names = whole(run, "11-programmatic-dependent-launch.py")
    x, y = run.randn(3000), run.randn(3000)
    for early in (True, False):
        run.close(names["add"](x, y, early), x.cpu() + y.cpu(), 0.0)
