"""Views as copies, tensors combined, resized and set."""

from __future__ import annotations

EXPRESSIONS = [
    "T.alias_copy(x)", "T.detach_copy(x)", "T.view_copy(x, (3, 2))", "T.view_copy(x.detach(), T.int64)", "T.expand_copy(v, (2, 3))", "T.permute_copy(b, (2, 0, 1))", "T.t_copy(x)",
    "T.transpose_copy(b, 0, 2)", "T.squeeze_copy(p)", "T.squeeze_copy(p, 0)", "T.squeeze_copy(p, (0, 1))", "T.unsqueeze_copy(x, 1)", "T.select_copy(x, 1, -1)", "T.slice_copy(x, 1, 0, None, 2)",
    "T.slice_copy(x, 0, 1)", "T.slice_copy(x, 0, 0, 2, -1)", "T.slice_copy(o)", "T.diagonal_copy(m, 1)", "T.as_strided_copy(x, (2, 2), (1, 2), 1)", "T.unfold_copy(x, 1, 2, 1)", "T.unbind_copy(x, 1)",
    "T.split_copy(x, 2, 1)", "T.split_with_sizes_copy(x, (1, 2), 1)", "T.permute_copy(x.detach(), (1, 0), out=T.empty(3, 2, dtype=T.float64, device=on))", "T.unsafe_split(x, 2, 1)", "T.unsafe_chunk(x, 2, 1)",
    "T.unsafe_split_with_sizes(x, (1, 2), 1)", "x.unsafe_split(1)", "T.ravel(x.t())", "T.ravel(x)", "T.narrow(x, 1, T.tensor(1), 2)", "T.cat(x)", "T.cat((p.to(memory_format=T.channels_last),) * 2, 1)",
    "T.cartesian_prod(v, o.reshape(1), v)", "T.cartesian_prod(v)", "T.cartesian_prod(x)", "T.combinations(v)", "T.combinations(v, 3)", "T.combinations(v, 2, True)", "T.combinations(v, 4)",
    "T.combinations(v, 0)", "T.combinations(x)", "T.combinations(v, -1)", "T.combinations(n, r=3, with_replacement=True)", "v.combinations(1) ~ T.combinations(v, 1)", "T.block_diag(x, v, o, m)", "T.block_diag(x, i)", "T.block_diag(b)",
    "T.block_diag()", "T.block_diag(e, i)", "T.kron(x, m)", "T.kron(v, x)", "T.kron(x, i)", "T.kron(o, b)", "x.kron(v)", "T.diagflat(x)", "T.diagflat(v, 1)", "T.diagflat(v, -2)", "o.diagflat()", "x.sum_to_size(3)", "x.sum_to_size(2, 1)",
    "x.sum_to_size((1, 1))", "x.sum_to_size(())", "x.sum_to_size(2, 3)", "x.sum_to_size(2)", "i.sum_to_size(1, 3)", "x.detach().clone().resize_(3, 2)", "x.detach().clone().resize_(2)", "x.detach().clone().resize_((4, 3)).shape",
    "x.detach().clone().resize_(4, 3)[:2]", "x.resize_(3, 2)", "i.clone().resize_(1, 2, 1, 3, memory_format=T.channels_last).stride()", "T.resize_as_(x.detach().clone(), v)", "x.detach().clone().resize_as_(m).shape",
    "T.zeros(1).double().to(on).set_(x.detach())", "T.zeros(1, dtype=T.float64).to(on).set_(x.detach(), 1, (2, 2), (3, 1))", "T.zeros(1).to(on).set_(x.detach())", "T.zeros(3).set_().shape", "x.is_set_to(x)", "x.is_set_to(x.t())",
    "T.fill(x, 2)", "T.fill(x, o)", "T.fill(x, x)", "T.fill_(i.clone(), 4)", "T.zero_(i.clone())", "T.diag_embed(x, 0, 1, 1)",
]  # fmt: skip
