"""In-place forms as functions, networks' functions in the namespace's own argument order, kinds of tensors, diagonals, their memory."""

from __future__ import annotations

from tritensor.tensor.public_api.publish import INPLACE_FUNCTIONS

# in-place functions that take more than x, or draw
_OTHERS = {
    "addmv_", "alpha_dropout_", "celu_", "clamp_", "clamp_max_", "clamp_min_", "clip_", "dropout_", "embedding_renorm_",
    "feature_alpha_dropout_", "feature_dropout_", "gcd_", "index_put_", "lcm_", "ldexp_", "rrelu_", "selu_", "threshold_", "xlogy_",
}  # fmt: skip
_UNARY = [*sorted(INPLACE_FUNCTIONS - _OTHERS), "detach_"]

EXPRESSIONS = [
    *[f"T.{name}({given})" for name in _UNARY for given in ("x * 0.3", "y[0] * 1")],
    *[f"T.{call}" for call in (
        "abs_(i)", "exp_(i)", "neg_(k)", "abs_(x)", "abs_()", "abs_(input=x * 1)", "abs_(other=x * 1)", "abs_(3)", "abs_([1.0])",
        "relu_(x * 1, inplace=True)", "clamp_(x * 1, 0.5)", "clamp_(x * 1, max=0.5)", "clamp_(x * 1, v - 1, v)", "clamp_(input=x * 1, min=0)", "clip_(x * 1, -1, 1)",
        "clamp_max_(x * 1, 0.5)", "clamp_min_(x * 1, 0.5)", "gcd_(i.clone(), j)", "lcm_(i.clone(), j)", "gcd_(x * 1, y)", "ldexp_(x * 1, j)", "xlogy_(x * 1, y)",
        "xlogy_(x * 1, 2.0)", "xlogy_(x * 1)", "addmv_(v[:2] * 1, x, v)", "addmv_(v[:2] * 1, x, v, beta=2, alpha=3)", "round_(x * 1, decimals=1)",
        "nan_to_num_(s.clone(), nan=7.0)", "logit_(y * 0.3, eps=0.1)", "index_put_(x * 1, (n[:2], n[:2]), v[:2])", "index_put_(x * 1, (k,), o, accumulate=True)",
        "index_put_(x, (k,), o)", "dropout_(x * 1, 0.0, True)", "dropout_(x * 1, 1.0, True)", "dropout_(x, 0.5, False)", "dropout_(x * 1)", "dropout_(x * 1, 1.5, True)",
        "native_dropout(x, 0.0, True)", "native_dropout(x, 1.0, True)", "native_dropout(x, 0.5, False)", "native_dropout(x, 2.0, True)", "native_dropout(i, 0.5, True)",
        "detach(x)", "detach(x * 2)", "detach_(x.view(6))", "embedding_renorm_(m.detach(), n[:2], 1.0, 2.0)", "embedding_renorm_(m.detach(), i[:, :1] * 0, 1.5, 1.0)",
        "embedding_renorm_(b.detach(), n, 1.0, 2.0)", "embedding_renorm_(m, n, 1.0, 2.0)", "embedding_renorm_(m.detach(), v, 1.0, 2.0)",
    )],
    "F.relu_(x * 1)", "F.elu_(x * 1)", "F.elu_(x * 1, 0.5)", "F.leaky_relu_(x * 1)", "F.leaky_relu_(x * 1, 0.2)", "F.leaky_relu_(x)",
    "F.max_pool2d_with_indices(p, 2)", "F.max_pool2d_with_indices(p, 3, 1, 1)",
    # networks' functions as torch.<name>
    *[f"T.{call}" for call in (
        "adaptive_avg_pool1d(b, 2)", "adaptive_max_pool1d(b, 2)", "adaptive_max_pool1d(b, (3,))", "bilinear(x, y, b, v[:2])",
        "bilinear(x, y, b)", "conv2d(p, w)", "conv2d(p, w, v, 2, 1)", "conv2d(p, w, padding='same')", "embedding(m, n)", "embedding(m, i[:, 2:] * 0)", "embedding(m, n, 0)",
        "embedding(m, n, padding_idx=2)", "embedding(m, n, padding_idx=-3)", "embedding(m, n, 7)", "layer_norm(x, (3,))", "layer_norm(x, [3], v, v + 1)",
        "layer_norm(x, (3,), v, v, 0.1, False)", "layer_norm(x, (2, 3), cudnn_enable=True)", "layer_norm(x, 3)", "layer_norm(x, (2,))", "max_pool2d(p, 2)", "max_pool2d(p, (2, 3), 1, 1, 1, True)",
        "max_pool2d(p, 2, return_indices=True)", "max_pool2d(p[0], 2)", "binary_cross_entropy_with_logits(x, y / 4)", "binary_cross_entropy_with_logits(x, y / 4, None, None, 1)",
        "binary_cross_entropy_with_logits(x, y.detach() / 4, v.detach(), v.detach(), 2)", "binary_cross_entropy_with_logits(x, y.detach() / 4, pos_weight=v.detach(), reduction=1)",
        "binary_cross_entropy_with_logits(x, y / 4, reduction='sum')", "binary_cross_entropy_with_logits(x, v, reduction=1)",
    )],
    # norms and copies
    *[f"T.{call}" for call in (
        "frobenius_norm(x, 0)", "frobenius_norm(x, (0, 1), True)", "frobenius_norm(x, ())", "frobenius_norm(b, (0, 2))", "frobenius_norm(b, (0, 1, 2))", "frobenius_norm(x)",
        "frobenius_norm(i, 0)", "frobenius_norm(x, dim=[1], keepdim=True)", "nuclear_norm(m)", "nuclear_norm(x, True)", "nuclear_norm(b, (0, 1))", "nuclear_norm(b, (1, 2), True)",
        "nuclear_norm(x, keepdim=True)", "nuclear_norm(v)", "nuclear_norm(b, 0)", "norm_except_dim(x)", "norm_except_dim(b, 2, 1)", "norm_except_dim(b, 2, 2)", "norm_except_dim(b, 1, 0)",
        "norm_except_dim(b, 2, -1)", "norm_except_dim(b, 3, 1)", "norm_except_dim(b, 2, 3)", "norm_except_dim(n)", "norm_except_dim(v=x, pow=2, dim=0)", "view_as_complex_copy(x)",
    )],
    # removed functions
    *[f"T.{call}" for call in ("eig(m)", "symeig(m)", "symeig(m, eigenvectors=True)", "matrix_rank(m)", "lstsq(x, m)", "solve(x, m)")],
    "m.eig()", "m.symeig(eigenvectors=True)", "x.lstsq(m)", "x.solve(m)",
    # diagonals
    *[f"T.zeros({shape}, dtype=T.float64).{call}" for shape, call in (
        ("3, 3", "fill_diagonal_(2)"), ("5, 2", "fill_diagonal_(2)"), ("5, 2", "fill_diagonal_(2, True)"), ("7, 2", "fill_diagonal_(2, wrap=True)"), ("9, 2", "fill_diagonal_(2, wrap=True)"),
        ("10, 2", "fill_diagonal_(2, wrap=True)"), ("2, 5", "fill_diagonal_(2, wrap=True)"), ("4, 1", "fill_diagonal_(2, wrap=True)"), ("2, 2, 2", "fill_diagonal_(fill_value=2)"),
        ("2, 3, 2", "fill_diagonal_(2)"), ("3", "fill_diagonal_(2)"), ("2, 0", "fill_diagonal_(2)"), ("2, 2", "fill_diagonal_(1j)"), ("4, 2", "t().fill_diagonal_(3)"),
        ("2, 2", "fill_diagonal_(T.tensor(2.0))"), ("3, 5", "t().fill_diagonal_(3, True)"), ("2", "fill_(1j)"), ("2", "fill_(2 + 0j)"),
    )],
    "(x * y).fill_diagonal_(0)", "x.fill_diagonal_(0)", "(i + 1).fill_diagonal_(2.7)", "k.fill_diagonal_(True)",
    # kinds of tensors
    *[f"x.{name}" for name in (
        "is_sparse", "is_sparse_csr", "is_quantized", "is_nested", "is_meta", "is_mkldnn", "is_mps", "is_xpu", "is_xla", "is_ipu", "is_maia", "is_mtia", "is_vulkan", "name",
        "grad_dtype", "is_distributed()", "sparse_dim()", "dense_dim()", "to_dense()", "to_dense(T.float32)", "to_dense() is x", "is_coalesced()", "dim_order()",
        "t().dim_order()", "expand(4, 2, 3).dim_order()", "dim_order(ambiguity_check=True)", "dim_order(ambiguity_check=1)", "resize(3, 2)", "resize(5)", "resize_as(y.t())",
        "resize_as(b)", "const_data_ptr() == x.data_ptr()", "as_subclass(int)",

    )],
    "f.as_subclass(T.nn.Parameter).mul(2)", "f.as_subclass(T.Tensor) is f", "f.as_subclass(T.Tensor)", "b.permute(2, 0, 1).dim_order()", "p.contiguous(memory_format=T.channels_last).dim_order()", "o.dim_order()", "e.dim_order()", "p[:, :, :1, :1].dim_order(ambiguity_check=True)",
    "p.contiguous(memory_format=T.channels_last).dim_order(ambiguity_check=[T.channels_last])", "T.is_distributed(x)",
    # memory
    *[f"{call}" for call in (
        "x.storage().size()", "x[1:].storage().nbytes()", "len(f.storage())", "f.untyped_storage().nbytes()", "f[1:].untyped_storage().size()", "len(f.untyped_storage())",
        "x.storage().data_ptr() == x[1:].storage().data_ptr()", "x.storage().data_ptr() == y.storage().data_ptr()", "x.untyped_storage() == x.view(-1).untyped_storage()",
        "x.untyped_storage() == y.untyped_storage()", "f.storage()[1]", "f[1:].storage()[0]", "f.storage().tolist()", "x.t().storage().tolist()", "f.storage().element_size()",
        "f.untyped_storage().element_size()", "i.storage().dtype", "e.storage().size()", "e.untyped_storage().data_ptr()", "x.storage().untyped().nbytes()",
        "x.storage_offset() * 8 + x.untyped_storage().data_ptr() == x.data_ptr()", "b[1, 2:].storage_offset() * 8 + b.untyped_storage().data_ptr() == b[1, 2:].data_ptr()",
    )],
    # numbers that a type does not hold
    *[f"T.full((2,), {v}, dtype=T.{t}, device=on)" for v, t in (
        ("300", "uint8"), ("2 ** 40", "int32"), ("1e40", "float32"), ("-1e40", "float32"), ("70000.0", "float16"), ("70000", "float16"), ("3.4e38", "bfloat16"), ("float('inf')", "int32"),
        ("float('nan')", "int64"), ("float('-inf')", "float16"), ("2.7", "int32"), ("2", "bool"), ("65504.0", "float16"), ("1e300", "float64"),
    )],
    "T.tensor(2 ** 70)", "T.tensor([1, 2 ** 70])", "T.asarray(2 ** 70)", "T.as_tensor([300], dtype=T.uint8)", "T.tensor([2 ** 40], dtype=T.int32)", "T.tensor(1e40)",
    "u.fill_(300)", "i.fill_(2 ** 70)", "i.fill_(float('inf'))", "f.fill_(1e40)", "f.half().fill_(70000)", "f.fill_(float('nan'))", "written(u, 0, 300)",
    "written(f, 0, 1e40)", "f.masked_fill(f > 0, 1e40)", "f.half().masked_fill(f > 0, -1e9)", "u.masked_fill(u > 3, 300)", "f.index_fill(0, n[:1] * 0, 1e40)", "u.index_fill(0, n[1:2], 300)",
    "T.full_like(u, 300)", "u.new_full((2,), 300)", "T.scatter(f, 0, n[1:2], 1e40)", "F.pad(u, (1, 1), value=300)", "F.pad(f, (1, 1), value=1e40)", "F.pad(u, (1, 1), value=2.7)",
    "T.linspace(0, 300, 3, dtype=T.uint8, device=on)", "T.zeros(2 ** 62, device=on)",
    # a few eigenpairs by iteration
    "T.lobpcg(m + m.mT, 1, X=y[:1].mT)[0]", "T.lobpcg((m + m.mT).detach(), 1, largest=False, X=v.detach().reshape(3, 1))[0]", "T.lobpcg((m + m.mT).detach(), B=m.detach() @ m.detach().mT, X=y[:1].detach().mT)[0]",
    "T.lobpcg(m.detach(), 2)", "T.lobpcg((m + m.mT).detach(), method='basic', X=y[:1].detach().mT, niter=50)[0]",
]  # fmt: skip
