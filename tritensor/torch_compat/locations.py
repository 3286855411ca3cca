"""Locations of PyTorch's names that no file of ours has under PyTorch's path: whole modules, single names, and the imports of a family of modules."""

from __future__ import annotations

# Modules of PyTorch's, and public ones of our own, that stand elsewhere in the package.
ELSEWHERE = {
    "autograd.forward_ad": "func.forward_ad", "cuda.nvtx": "ground.nvtx", "nn.attention.flex_attention": "func.flexible.attention",
    "_higher_order_ops": "func.scans", "_higher_order_ops.associative_scan": "func.scans",
    "vision.ops.misc": "vision.ops.layers",
    "vision.transforms.v2._transform": "vision.transforms.v2.base", "vision.transforms.v2._utils": "vision.transforms.v2.samples",
    "vision.transforms.v2.functional._utils": "vision.transforms.v2.functional.registry",
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "distributed.algorithms.ddp_comm_hooks.local_sgd",
    "errors": "ground.errors", "table": "ops.table", "tuning": "ops.tuning", "utils.pytree": "ground.pytree",
}  # fmt: skip
# Commands that `python -m tritensor.NAME` runs, and what the name itself is: a module, or behind a colon something in it.
COMMANDS = {"doctor": "tools.doctor", "launch": "cuda.launch:launch", "run": "tools.run_script"}
# Modules that are files of modules/, under PyTorch's path.
FILES = {
    "distributed.rpc": "distributed.rpc", "distributed.autograd": "distributed.rpc", "distributed._tensor": "distributed.older_paths",
    "cuda.amp.common": "devices.amp_availability",
    "_C": "internals", "_C._nn": "nn.internals", "_C._profiler": "autograd.profiler_settings",
    "accelerator": "devices.accelerator", "backends": "backends", "compiler": "compiler", "cpu": "devices.cpu", "cuda.nccl": "devices.nccl", "jit": "jit",
    "xpu": "devices.xpu", "mtia": "devices.absent",
    "library": "custom_ops",
    "quasirandom": "quasirandom",
    "return_types": "return_types", "types": "types", "version": "version", "nn.modules.utils": "nn.ntuple", "jit.annotations": "annotations",
    "__config__": "front.configuration", "_tensor_str": "front.tensor_text",
    "_utils": "private.flat_tensors", "__future__": "private.future", "nn._reduction": "private.nn_reduction",
    "futures": "futures",
    "nn.grad": "nn.grad", "nn.common_types": "nn.common_types", "overrides": "overriding.overrides",
    "utils._python_dispatch": "overriding.python_dispatch", "_ops": "overriding.op_overloads", "utils._mode_utils": "overriding.mode_names",
    "_jit_internal": "private.jit_internal", "_prims_common": "private.prims_common",
    "testing._internal": "private.test_case", "testing._internal.common_utils": "private.test_case",
    "utils.model_zoo": "private.model_zoo", "distributed.distributed_c10d": "private.distributed_c10d",
    "distributed.constants": "private.distributed_c10d", "_subclasses.fake_tensor": "tracing.fake_tensors", "_subclasses": "tracing.fake_tensors",
    "fx.experimental": "tracing.proxy_tensor", "fx.experimental.proxy_tensor": "tracing.proxy_tensor",
    "_dynamo": "private.dynamo", "_dynamo.eval_frame": "private.dynamo", "_inductor": "private.inductor",
    "distributed.algorithms._checkpoint": "distributed.activation_wrappers",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "private.checkpoint_wrapper",
    "distributed.tensor.placement_types": "private.placement_types", "distributed.tensor._utils": "distributed.tensor_layout",
    "distributed._composable": "distributed.composable_fsdp", "distributed._composable.fsdp": "distributed.composable_fsdp",
    "distributed._functional_collectives": "distributed.functional_collectives",
    "distributed.utils": "distributed.module_states",
    "distributed.checkpoint.hf_storage": "distributed.absent_storage",
    "_dynamo._trace_wrapped_higher_order_op": "tracing.index_by_tensors",
    "utils.data.datapipes": "data_pipes", "utils.data.datapipes.iter": "data_pipes", "utils.data.datapipes.iter.combinatorics": "data_pipes",
}  # fmt: skip
FILES = {path: f"torch_compat.modules.{file}" for path, file in FILES.items()} | ELSEWHERE
# Python's own modules that PyTorch's import, through which tests set what the machine is said to have.
STANDARD = {"utils.data.dataloader": ("os",)}
# Names that a module has beside its own: {path: {file of modules/, or behind a point module of the package: names}}, name=other where another name
# stands there. Nothing of it is imported before somebody asks for the name.
_ADDED: dict[str, dict[str, str]] = {
    "": {
        "amp": "autocast GradScaler",
        "files.file_reader": "PyTorchFileReader",
        "futures": "Future",
        "internals": "Storage Type",
        "jit": "ScriptModule",
        ".tensor.public_api.layout": "sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn",
        "front.checks":
            "_assert _assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with _check_type "
            "_check_value _check_with",
        "front.undocumented_ops":
            "_segment_reduce _shape_as_tensor _standard_gamma _sample_dirichlet _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
            "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short",
        ".cuda.streams.stream": "Event Stream",
        ".ground.absent_dtypes":
            "float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 complex32 chalf=complex32 "
            "int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7",
    },
    "_C": {
        "front.compiled_names":
            "_are_functorch_transforms_active _get_default_device _get_accelerator _get_privateuse1_backend_name _jit_can_fuse_on_cpu _jit_can_fuse_on_gpu",
    },
    "autograd": {"autograd.old_functions": "NestedIOFunction", ".profiler.profiler": "_profiler_enabled=is_recording"},
    "autograd.function": {"autograd.old_functions": "InplaceFunction NestedIOFunction"},
    "autograd.profiler": {
        "autograd.profiler": "profile emit_nvtx", ".profiler": "record_function DeviceType ProfilerActivity kineto_available",
        ".profiler.results.averages": "EventList FunctionEventAvg", ".profiler.results.events": "FunctionEvent Interval Kernel",
    },
    "autograd.profiler_util": {
        ".profiler": "DeviceType",
        ".profiler.results.averages": "EventList FunctionEventAvg", ".profiler.results.events": "FunctionEvent Interval Kernel",
    },
    "cpu.amp": {"amp": "autocast=cpu_autocast GradScaler=CpuGradScaler"},
    "cuda.memory": {".debug.memory_history": "_record_memory_history _snapshot _dump_snapshot"},
    "cuda.amp": {"amp": "autocast=cuda_autocast GradScaler=CudaGradScaler custom_fwd custom_bwd"},
    "distributed": {"private.distributed_c10d": "Backend supports_complex _rank_not_in_group"},
    "distributed.elastic.multiprocessing.errors": {"distributed.elastic_errors": "record"},
    "distributions.kl": {".distributions.multivariate.matrix_products": "_batch_mahalanobis=mahalanobis"},
    "distributions.lowrank_multivariate_normal": {
        ".distributions.multivariate.matrix_products": "_batch_mahalanobis=mahalanobis _batch_mv=matrix_vector",
    },
    "distributions.multivariate_normal": {
        ".distributions.multivariate.matrix_products":
            "_batch_mahalanobis=mahalanobis _batch_mv=matrix_vector _precision_to_scale_tril=factor_of_inverse",
        ".distributions.parameters": "_standard_normal=draw_standard_normal", ".distributions.lazy": "lazy_property",
    },
    "distributions.transforms": {".distributions.transforms.pointwise": "_clipped_sigmoid=clipped_sigmoid"},
    "distributed.tensor": {"private.placement_types": "Shard DTensor Placement Replicate Partial"},
    "distributions.utils": {
        ".distributions.lazy": "lazy_property",
        ".distributions.parameters":
            "broadcast_all clamp_probs logits_to_probs probs_to_logits tril_matrix_to_vec vec_to_tril_matrix _standard_normal=draw_standard_normal "
            "_sum_rightmost=sum_rightmost",
    },
    "export": {"private.export": "Dim dims"},
    "fx": {"internals": "wrap"},
    "jit.annotations": {"private.jit_internal": "BroadcastingList1 BroadcastingList2 BroadcastingList3"},
    "mps": {"devices.absent": "is_available device_count"},
    "nn.functional": {
        "nn.private_names":
            "_Reduction _canonical_mask _get_softmax_dim _in_projection _in_projection_packed _list_with_default _mha_shape_check _none_or_dtype "
            "_unpool_output_size _verify_batch_size GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES assert_int_or_pair DType",
        "nn.ntuple": "_pair _single _triple",
        "overriding.overrides": "has_torch_function has_torch_function_unary has_torch_function_variadic handle_torch_function",
        "private.jit_internal": "BroadcastingList1 BroadcastingList2 BroadcastingList3 boolean_dispatch _overload",
    },
    "nn.modules.activation": {".nn.layers.attention.base": "NonDynamicallyQuantizableLinear"},
    "nn.modules.batchnorm": {
        ".nn.layers.normalization.batchnorm": "_BatchNorm _NormBase _LazyNormBase",
    },
    "nn.modules.container": {"nn.private_names": "_addindent OrderedDict"},
    "nn.modules.conv": {".nn.layers.convolution": "_ConvNd _ConvTransposeNd"},
    "nn.modules.dropout": {".nn.layers.dropout": "_DropoutNd"},
    "nn.modules.instancenorm": {".nn.layers.normalization.batchnorm": "_InstanceNorm"},
    "nn.modules.lazy": {".nn.layers.lazy": "LazyModuleMixin"},
    "nn.modules.linear": {".nn.layers.attention.base": "NonDynamicallyQuantizableLinear"},
    "nn.modules.loss": {".nn.layers.losses.base": "_Loss _WeightedLoss"},
    "nn.modules.module": {
        "nn.private_names": "_addindent _EXTRA_STATE_KEY_SUFFIX", ".nn.state": "_IncompatibleKeys=IncompatibleKeys",
        "nn.module_hooks":
            "register_module_backward_hook register_module_buffer_registration_hook register_module_forward_hook register_module_forward_pre_hook "
            "register_module_full_backward_hook register_module_full_backward_pre_hook register_module_module_registration_hook "
            "register_module_parameter_registration_hook",
    },
    "nn.modules.padding": {".nn.layers.padding":
        "_ConstantPadNd=_Constant _ReflectionPadNd=ReflectionPad1d _ReplicationPadNd=ReplicationPad1d _CircularPadNd=CircularPad1d"},
    "nn.modules.pooling": {
        ".nn.layers.pooling": "_MaxPoolNd _AvgPoolNd _LPPoolNd _MaxUnpoolNd _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd",
    },
    "nn.modules.rnn": {"nn.private_names": "apply_permutation"},
    "nn.modules.transformer": {"nn.private_names": "_get_clones _get_activation_fn _generate_square_subsequent_mask"},
    "nn.parallel": {".distributed.data_parallel": "DistributedDataParallel DistributedDataParallelCPU=DistributedDataParallel"},
    "nn.parallel.parallel_apply": {".nn.parallel": "get_a_var"},
    "nn.parallel.scatter_gather": {".nn.parallel": "scatter_kwargs"},
    "serialization": {
        "private.serialization":
            "DEFAULT_PROTOCOL FILE_LIKE MAP_LOCATION SourceChangeWarning get_default_mmap_options set_default_mmap_options skip_data validate_cuda_device",
        ".io.device_mapping": "default_restore_location location_tag register_package",
        ".io.safe_globals": "add_safe_globals clear_safe_globals get_safe_globals safe_globals",
        ".io.torch_format.allowed_names": "get_unsafe_globals_in_checkpoint",
        ".io.torch_format.endianness": "LoadEndianness get_default_load_endianness set_default_load_endianness",
        ".io.torch_format.writing": "get_crc32_options set_crc32_options",
    },
    "utils": {".nn.moving": "swap_tensors"},
    "utils.data.dataloader": {".data.iterators":
        "_BaseDataLoaderIter=LoaderIterator _SingleProcessDataLoaderIter=SingleProcessIterator _MultiProcessingDataLoaderIter=MultiProcessIterator "
        "_DatasetKind=DatasetKind",
        ".data.sampler": "_InfiniteConstantSampler=ConstantSampler"},
    "utils.dlpack": {"internals": "to_dlpack"},
    "utils.cpp_extension": {"internals": "CUDA_HOME ROCM_HOME=CUDA_HOME"},
}  # fmt: skip
# Networks of torchvision's: the file of models/networks, the names of functions and of enums of weights, and their sizes.
_NETWORKS = {
    "mobilenetv2": ("mobilenetv2", "mobilenet_{}", "MobileNet_{}_Weights", "v2"),
    "mobilenetv3": ("mobilenetv3", "mobilenet_v3_{}", "MobileNet_V3_{}_Weights", "large=Large small=Small"),
    "efficientnet": ("efficientnet", "efficientnet_{}", "EfficientNet_{}_Weights", "b0 b1 b2 b3 b4 b5 b6 b7 v2_s v2_m v2_l"),
    "convnext": ("convnext", "convnext_{}", "ConvNeXt_{}_Weights", "tiny=Tiny small=Small base=Base large=Large"),
    "vision_transformer": ("vision_transformer", "vit_{}", "ViT_{}_Weights", "b_16 b_32 l_16 l_32 h_14"),
    "swin_transformer": ("swin", "swin_{}", "Swin_{}_Weights", "t s b v2_t v2_s v2_b"),
    "regnet": (
        "regnet", "regnet_{}", "RegNet_{}_Weights",
        "y_400mf y_800mf y_1_6gf y_3_2gf y_8gf y_16gf y_32gf y_128gf x_400mf x_800mf x_1_6gf x_3_2gf x_8gf x_16gf x_32gf",
    ),
    "shufflenetv2": ("shufflenet", "shufflenet_v2_{}", "ShuffleNet_V2_{}_Weights", "x0_5 x1_0 x1_5 x2_0"),
    "mnasnet": ("mnasnet", "mnasnet{}", "MNASNet{}_Weights", "0_5 0_75 1_0 1_3"),
}  # fmt: skip
for _path, (_file, _function, _enum, _sizes) in _NETWORKS.items():
    _spelt = [_word.partition("=") for _word in _sizes.split()]
    _names = [_function.format(_size) for _size, _, _ in _spelt] + [_enum.format(_other or _size.upper()) for _size, _, _other in _spelt]
    FILES[f"vision.models.{_path}"] = f"vision.models.networks.{_file}"
    _ADDED[f"vision.models.{_path}"] = {".vision.models": " ".join(_names)}
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
    "": {"torch": ""},
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
    "sparse": {"torch": "", "Tensor": "tensor.core:Tensor"},
    "nested": {"torch": "", "Tensor": "tensor.core:Tensor"},
    "optim": {"torch": "", "Tensor": "tensor.core:Tensor", "Optimizer": "optim:Optimizer"},
    "autograd": {"torch": ""},
    "distributions": {
        "torch": "", "Tensor": "tensor.core:Tensor", "Size": "tensor.size:Size", "F": "nn.functional", "constraints": "distributions.constraints",
        "Distribution": "distributions:Distribution", "ExponentialFamily": "distributions:ExponentialFamily", "Transform": "distributions:Transform",
        **{name: f"distributions.utils:{name}" for name in (
            "broadcast_all", "lazy_property", "logits_to_probs", "probs_to_logits", "clamp_probs", "vec_to_tril_matrix", "tril_matrix_to_vec")},
    },
}  # fmt: skip
