"""Where names of PyTorch's stand that no file of ours has under PyTorch's path: whole modules, single names, and what a family of modules imports."""

from __future__ import annotations

# Modules that are files of this folder, under PyTorch's path.
FILES = {
    "_C": "internals", "_C._profiler": "gradients.profiler_settings",
    "accelerator": "machines.accelerator", "backends": "backends", "compiler": "compiler", "cpu": "machines.cpu", "cuda.nccl": "machines.nccl", "jit": "jit",
    "library": "custom_ops",
    "mps": "machines.mps", "return_types": "return_types", "types": "types",
    "version": "version", "xpu": "machines.xpu", "nn.modules.utils": "networks.tuples",
    "nn.modules.conv": "networks.conv", "nn.modules.lazy": "networks.lazy",
    "distributions.utils": "distribution_tools", "jit.annotations": "annotations",
    "_utils": "underscored.tensor_lists", "__future__": "underscored.future", "nn._reduction": "underscored.reductions",
    "nn.grad": "networks.conv_gradients", "nn.common_types": "networks.size_types", "overrides": "underscored.overriding",
    "_jit_internal": "underscored.annotating", "_prims_common": "underscored.promotion_kinds",
    "utils.model_zoo": "underscored.downloads", "distributed.distributed_c10d": "underscored.process_groups",
    "_dynamo": "underscored.dynamo", "_dynamo.eval_frame": "underscored.dynamo", "_inductor": "underscored.inductor",
    "distributed.algorithms._checkpoint": "underscored.checkpoint_wrappers",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "underscored.checkpoint_wrappers",
    "distributed.tensor.placement_types": "underscored.placements",
}  # fmt: skip
# Names that a module has beside its own: {path: {file of this folder: names}}, name=other where the file has another name for it.
_ADDED: dict[str, dict[str, str]] = {
    "": {"amp": "autocast GradScaler", "compiler": "compile"},
    "autograd": {"gradients.old_functions": "NestedIOFunction"},
    "autograd.function": {"gradients.old_functions": "InplaceFunction NestedIOFunction"},
    "autograd.profiler": {"gradients.profiler":
        "profile record_function emit_nvtx EventList FunctionEvent FunctionEventAvg Kernel Interval DeviceType ProfilerActivity kineto_available"},
    "autograd.profiler_util": {"gradients.profiler": "EventList FunctionEvent FunctionEventAvg Kernel Interval DeviceType"},
    "cpu.amp": {"amp": "autocast=cpu_autocast GradScaler=CpuGradScaler"},
    "cuda.memory": {"machines.memory_histories": "_record_memory_history _snapshot _dump_snapshot"},
    "cuda.amp": {"amp": "autocast=cuda_autocast GradScaler=CudaGradScaler custom_fwd custom_bwd"},
    "distributed": {
        "underscored.process_groups": "Backend supports_complex",
    },
    "distributed.elastic.multiprocessing.errors": {"launched": "record"},
    "distributed.tensor": {"underscored.placements": "Shard DTensor"},
    "export": {"underscored.named_sizes": "Dim dims"},
    "fx": {"internals": "wrap"},
    "nn.functional": {
        "networks.hidden":
            "_Reduction _canonical_mask _get_softmax_dim _in_projection _in_projection_packed _list_with_default _mha_shape_check _none_or_dtype _pair "
            "_single _triple _unpool_output_size _verify_batch_size GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES assert_int_or_pair DType",
        "underscored.overriding": "has_torch_function has_torch_function_unary has_torch_function_variadic handle_torch_function",
        "underscored.annotating": "BroadcastingList1 BroadcastingList2 BroadcastingList3 boolean_dispatch _overload",
    },
    "nn.modules.activation": {"networks.hidden": "NonDynamicallyQuantizableLinear"},
    "nn.modules.batchnorm": {"networks.bases": "_BatchNorm _NormBase _LazyNormBase"},
    "nn.modules.container": {"networks.hidden": "_addindent OrderedDict"},
    "nn.modules.dropout": {"networks.bases": "_DropoutNd"},
    "nn.modules.instancenorm": {"networks.bases": "_InstanceNorm"},
    "nn.modules.linear": {"networks.hidden": "NonDynamicallyQuantizableLinear"},
    "nn.modules.loss": {"networks.bases": "_Loss _WeightedLoss"},
    "nn.modules.module": {
        "networks.hidden": "_IncompatibleKeys _addindent _EXTRA_STATE_KEY_SUFFIX",
        "networks.module_hooks":
            "register_module_backward_hook register_module_buffer_registration_hook register_module_forward_hook register_module_forward_pre_hook "
            "register_module_full_backward_hook register_module_full_backward_pre_hook register_module_module_registration_hook "
            "register_module_parameter_registration_hook",
    },
    "nn.modules.padding": {"networks.bases": "_ConstantPadNd _ReflectionPadNd _ReplicationPadNd _CircularPadNd"},
    "nn.modules.pooling": {"networks.bases": "_MaxPoolNd _AvgPoolNd _LPPoolNd _MaxUnpoolNd _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd"},
    "nn.modules.rnn": {"networks.hidden": "apply_permutation"},
    "nn.modules.transformer": {"networks.hidden": "_get_clones _get_activation_fn _generate_square_subsequent_mask"},
    "nn.parallel": {"networks.replicas": "DistributedDataParallel DistributedDataParallelCPU=DistributedDataParallel"},
    "nn.parallel.parallel_apply": {"networks.replicas": "get_a_var"},
    "nn.parallel.scatter_gather": {"networks.replicas": "scatter_kwargs"},
    "serialization": {
        "underscored.saved_files":
            "FILE_LIKE LoadEndianness MAP_LOCATION SourceChangeWarning add_safe_globals clear_safe_globals default_restore_location get_crc32_options "
            "get_default_load_endianness get_default_mmap_options get_safe_globals get_unsafe_globals_in_checkpoint location_tag register_package "
            "safe_globals set_crc32_options set_default_load_endianness set_default_mmap_options skip_data validate_cuda_device",
    },
    "utils": {"networks.bases": "swap_tensors"},
    "utils.dlpack": {"internals": "to_dlpack"},
    "utils.cpp_extension": {"internals": "CUDA_HOME ROCM_HOME=CUDA_HOME"},
}  # fmt: skip
ADDED: dict[str, dict[str, str]] = {  # {path: {name: file, and behind a colon the name in it}}
    path: {
        name: file + (f":{other}" if other else "")
        for file, names in files.items()
        for name, _, other in (word.partition("=") for word in names.split())
    }
    for path, files in _ADDED.items()
}
# What the modules of a family import from elsewhere: {family: {name: module of ours, and behind a colon the name in it}}.
IMPORTED: dict[str, dict[str, str]] = {
    "nn.modules": {
        "torch": "", "F": "nn.functional", "init": "nn.init", "Module": "nn:Module", "ModuleList": "nn:ModuleList", "Sequential": "nn:Sequential",
        "Parameter": "nn:Parameter", "Buffer": "nn:Buffer", "Tensor": "tensor.core:Tensor", "Size": "tensor.size:Size", "Linear": "nn:Linear",
        "LayerNorm": "nn:LayerNorm", "Dropout": "nn:Dropout", "MultiheadAttention": "nn:MultiheadAttention", "RemovableHandle": "nn.hooks:RemovableHandle",
        "UninitializedParameter": "nn.parameter:UninitializedParameter", "UninitializedBuffer": "nn.parameter:UninitializedBuffer",
        "LazyModuleMixin": "nn.modules.lazy:LazyModuleMixin", "PackedSequence": "nn.utils.rnn:PackedSequence",
        "constant_": "nn.init:constant_", "xavier_normal_": "nn.init:xavier_normal_", "xavier_uniform_": "nn.init:xavier_uniform_",
        **{name: f"nn.common_types:{name}" for name in ("_size_1_t", "_size_2_t", "_size_3_t", "_size_any_t")},
        **{name: f"nn.modules.utils:{name}" for name in ("_single", "_pair", "_triple", "_ntuple", "_reverse_repeat_tuple")},
    },
    "nn.parallel": {"torch": "", "Module": "nn:Module"},
    "nn.utils": {"torch": "", "Tensor": "tensor.core:Tensor", "Module": "nn:Module", "parametrize": "nn.utils.parametrize"},
    "optim": {"torch": "", "Tensor": "tensor.core:Tensor", "Optimizer": "optim:Optimizer"},
    "autograd": {"torch": ""},
    "distributions": {
        "torch": "", "Tensor": "tensor.core:Tensor", "Size": "tensor.size:Size", "F": "nn.functional", "constraints": "distributions.constraints",
        "Distribution": "distributions:Distribution", "ExponentialFamily": "distributions:ExponentialFamily", "Transform": "distributions:Transform",
        **{name: f"distributions.utils:{name}" for name in (
            "broadcast_all", "lazy_property", "logits_to_probs", "probs_to_logits", "clamp_probs", "vec_to_tril_matrix", "tril_matrix_to_vec")},
    },
}  # fmt: skip
