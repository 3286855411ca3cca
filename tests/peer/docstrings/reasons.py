"""Docstrings of PyTorch's whose examples do not all run the same here, by the reason."""

REASONS: dict[str, str] = {
    "there are no sparse tensors here": """
        torch.narrow_copy torch.sparse_coo_tensor torch.Tensor.col_indices torch.Tensor.crow_indices torch.Tensor.sparse_mask torch.Tensor.to_dense
        torch.Tensor.to_sparse torch.Tensor.to_sparse_bsc torch.Tensor.to_sparse_bsr torch.Tensor.to_sparse_coo torch.Tensor.to_sparse_csc
        torch.Tensor.to_sparse_csr torch.sparse.as_sparse_gradcheck torch.sparse.mm torch.sparse.spdiags torch.sparse_bsc_tensor
        torch.sparse_bsr_tensor torch.sparse_compressed_tensor torch.sparse_csc_tensor torch.sparse_csr_tensor""",
    "nothing is quantised here": """
        torch.fake_quantize_per_channel_affine torch.fake_quantize_per_tensor_affine torch.quantize_per_channel torch.quantize_per_tensor
        torch.quantize_per_tensor_dynamic torch.quantized_batch_norm torch.quantized_max_pool1d torch.quantized_max_pool2d""",
    "conj() and its like compute their result at once": "torch.conj torch.resolve_conj torch.resolve_neg",
    "there is no complex32": "torch.set_default_dtype",
    "denormals are never flushed": "torch.set_flush_denormal",
    "a gradient has its tensor's type": "torch.Tensor.grad_dtype",
    "memory is no object of its own": "torch.is_storage",
    "chance decides a shape": "torch.masked_select",
    "PyTorch's own library of operators, tracing and dispatch modes": """
        torch.func.functionalize torch.library.CustomOpDef.register_kernel torch.library.CustomOpDef.register_autocast
        torch.library.CustomOpDef.register_vmap torch.library.custom_op torch.library.get_kernel
        torch.library.register_autocast torch.library.register_fake torch.library.register_kernel torch.library.register_vmap torch.library.triton_op
        torch.library.wrap_triton torch.overrides.get_ignored_functions torch.overrides.get_testing_overrides torch.overrides.redispatch_function
        torch.masked.is_masked_tensor torch.masked.logaddexp""",
    "PyTorch's own machinery": """
        torch._is_device_backend_autoload_enabled torch.Event torch.cuda.cudart torch.utils.ThroughputBenchmark
        torch.utils.generate_methods_for_privateuse1_backend torch.utils.rename_privateuse1_backend torch.linalg._powsum""",
    "not built yet": """
        torch.thread_safe_generator torch.autograd.profiler.Future.then torch.autograd.profiler.Future.add_done_callback
        torch.autograd.profiler.Future.set_exception torch.autograd.profiler.record_function torch.serialization.skip_data
        torch.utils.data.IterableDataset""",
}
