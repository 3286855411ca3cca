"""Differences on purpose between our signatures and PyTorch's, each with its reason."""

from __future__ import annotations

# The reasons that several functions share.
MEANT = "None stands for what PyTorch writes out: all dims, the file's generator, matrix indexing, a distance of 1"
LOSSES = "the stub file only: torch itself gives every loss where it is not given"
STUB = "the stub file only: torch itself refuses the call"
FORMS = "one parameter serves two overloads; given by place or by name it comes to the same (calls in tests/tensor/test_keywords.py)"
PRODUCT_TYPE = "a product in another type than its factors' is for GPUs in PyTorch, too, and not there yet"
GRAPHS = "other threads' calls end no capture here, and a graph keeps the memory that it was captured with"
SNAPSHOT = "one pool serves all allocations, and no stack traces are kept"
BY_NAME = "out= goes by keyword here in every function"

# (names, what is different, why)
DIFFERENCES: list[tuple[str, str, str]] = [
    ("torch.amax torch.amin Tensor.amax Tensor.amin", "default of dim", MEANT),
    *(("torch.lstm torch.gru torch.rnn_tanh torch.rnn_relu", f"{k}=", "the form for packed data goes by place, as its callers write it") for k in ("data", "batch_sizes")),
    ("nn.Transformer.__init__ nn.TransformerEncoderLayer.__init__ nn.TransformerDecoderLayer.__init__", "default of activation", "relu in both; the record says \"function\""),
    ("torch.roll Tensor.roll", "default of dims", MEANT),
    ("torch.meshgrid", "default of indexing", MEANT),
    ("torch.gradient", "default of spacing", MEANT),
    ("torch.avg_pool1d", "default of stride", MEANT),
    ("torch.trapezoid torch.trapz torch.cumulative_trapezoid", "default of dx", MEANT),
    ("utils.data.random_split", "default of generator", MEANT),
    ("torch.std torch.var torch.std_mean torch.var_mean Tensor.std Tensor.var", "default of unbiased", MEANT),
    ("torch.std torch.var torch.std_mean torch.var_mean Tensor.std Tensor.var", "order", FORMS),
    ("torch.max torch.min Tensor.max Tensor.min torch.scatter Tensor.scatter Tensor.scatter_", "order", FORMS),
    ("torch.arange torch.randint torch.randint_like torch.repeat_interleave Tensor.random_", "order", FORMS),
    ("torch.transpose torch.swapaxes torch.swapdims Tensor.transpose Tensor.swapaxes Tensor.swapdims Tensor.transpose_ Tensor.swapaxes_ Tensor.swapdims_", "order", FORMS),
    ("Tensor.squeeze_ Tensor.unsqueeze_ Tensor.to", "order", FORMS),
    ("Tensor.new_empty Tensor.new_full Tensor.new_ones Tensor.new_zeros Tensor.new_tensor", "order", FORMS),
    ("torch.addmm torch.baddbmm torch.bmm torch.mm", "out_dtype=", PRODUCT_TYPE),
    ("torch.linspace torch.logspace", "call by keyword", STUB),
    ("torch.linspace torch.logspace", "default of steps", STUB),
    *(("Tensor.new", f"{k}=", "an old constructor, whose arguments go by place; memory is no object of its own here") for k in ("other", "size", "storage")),
    ("torch.result_type", "call by keyword", "`tensor` names the second operand of one overload in PyTorch, the first of another; here the first"),
    ("torch.asarray", "default of requires_grad", MEANT),
    ("torch.tensor", "call by place", STUB),
    ("Tensor.requires_grad_", "mode=", STUB),
    ("Tensor.random_ Tensor.uniform_", "from_=", "the stub file's name for the keyword `from`, which torch takes, and this library"),
    ("torch.binary_cross_entropy_with_logits torch.kl_div torch.hinge_embedding_loss torch.margin_ranking_loss", "default of reduction", LOSSES),
    ("torch.cosine_embedding_loss torch.triplet_margin_loss torch.ctc_loss", "default of reduction", LOSSES),
    ("torch.conv1d torch.conv2d torch.conv3d", "default of padding", "the overload of words says 'valid', which is the other's 0"),
    *(("torch.nuclear_norm", what, FORMS) for what in ("order", "default of keepdim")),
    ("torch.save", "default of pickle_module", "Python's pickle in both; the record says \"module\""),
    ("torch.norm torch.tensordot torch.lu", "call by place", BY_NAME),
    ("cuda.graph.__init__ cuda.CUDAGraph.capture_begin", "check_input_liveness=", GRAPHS),
    ("cuda.graph.__init__ cuda.CUDAGraph.capture_begin", "default of capture_error_mode", GRAPHS),
    ("cuda.graph.__init__", "enable_annotations=", GRAPHS),
    ("cuda.memory_snapshot", "include_traces=", SNAPSHOT),
    ("cuda.memory_snapshot", "mempool_id=", SNAPSHOT),
]  # fmt: skip
