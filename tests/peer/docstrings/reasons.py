"""Docstrings of PyTorch's whose examples do not all run the same here, by the reason. Names are those below torch."""

REASONS: dict[str, str] = {
    "there are no sparse tensors here": """
        narrow_copy sparse_coo_tensor Tensor.col_indices Tensor.crow_indices Tensor.sparse_mask Tensor.to_dense
        Tensor.to_sparse Tensor.to_sparse_bsc Tensor.to_sparse_bsr Tensor.to_sparse_coo Tensor.to_sparse_csc
        Tensor.to_sparse_csr sparse.as_sparse_gradcheck sparse.mm sparse.spdiags sparse_bsc_tensor
        sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor""",
    "nothing is quantised here": """
        fake_quantize_per_channel_affine fake_quantize_per_tensor_affine quantize_per_channel quantize_per_tensor
        quantize_per_tensor_dynamic quantized_batch_norm quantized_max_pool1d quantized_max_pool2d""",
    "conj() and its like compute their result at once": "conj resolve_conj resolve_neg",
    "there is no complex32": "set_default_dtype",
    "denormals are never flushed": "set_flush_denormal",
    "a gradient has its tensor's type": "Tensor.grad_dtype",
    "memory is no object of its own": "is_storage",
    "chance decides a shape": "masked_select",
    "PyTorch's own library of operators, tracing and dispatch modes": """
        func.functionalize library.CustomOpDef.register_vmap library.get_kernel library.register_fake library.register_vmap
        library.wrap_triton overrides.get_ignored_functions overrides.redispatch_function
        masked.is_masked_tensor masked.logaddexp""",
    "PyTorch's own machinery": """
        _is_device_backend_autoload_enabled cuda.cudart utils.ThroughputBenchmark
        utils.generate_methods_for_privateuse1_backend utils.rename_privateuse1_backend linalg._powsum""",
    "a checkpoint without its data is none": "serialization.skip_data",
    "not built yet": "thread_safe_generator",
}
