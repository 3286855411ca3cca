"""torch._inductor: no code is generated; settings are remembered."""

from __future__ import annotations

from tritensor.torch_compat.modules.private.compiler_settings import Settings

# PyTorch's values.
config = Settings("_inductor.config", {
    "aggressive_fusion": False, "allow_buffer_reuse": True, "benchmark_fusion": False, "benchmark_harness": True, "compile_threads": 1,
    "coordinate_descent_check_all_directions": False, "coordinate_descent_tuning": False, "cpp_wrapper": False, "debug": False,
    "dce": False, "epilogue_fusion": True, "fallback_random": False, "force_fuse_int_mm_with_mul": False, "freezing": False,
    "fx_graph_cache": True, "fx_graph_remote_cache": None, "layout_optimization": True, "max_autotune": False, "max_autotune_gemm": False,
    "max_autotune_gemm_backends": "ATEN,TRITON,CPP", "max_autotune_pointwise": False, "max_fusion_size": 64, "permute_fusion": False,
    "reorder_for_compute_comm_overlap": False, "shape_padding": True, "size_asserts": True, "use_mixed_mm": True,
    "cpp.simdlen": None, "cpp.threads": -1, "trace.enabled": False, "triton.autotune_pointwise": True, "triton.cudagraph_trees": True,
    "triton.cudagraphs": False, "triton.dense_indexing": False, "triton.multi_kernel": 0, "triton.persistent_reductions": True,
    "triton.store_cubin": False, "triton.unique_kernel_names": True,
})  # fmt: skip
