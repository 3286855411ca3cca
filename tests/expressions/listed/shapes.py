"""Views and reorderings."""

from __future__ import annotations

EXPRESSIONS = [
    "x.reshape(3, 2)", "x.view(-1)", "x.view(3, -1)", "x.t().reshape(6)", "x.t().view(6)", "x.reshape(4, 2)", "x.reshape(-1, -1)", "x.view_as(y.t().contiguous())",
    "x.reshape_as(y.t())", "T.ravel(x.t())", "T.flatten(b)", "T.flatten(b, 1)", "T.flatten(b, 0, 1)", "T.flatten(b, 2, 1)", "T.flatten(o)", "T.unflatten(x, 1, (3, 1))",
    "x.unflatten(-1, (-1, 3))", "x.unflatten(1, (2, 2))", "T.squeeze(p)", "p.squeeze(0)", "p.squeeze(1)", "p.squeeze((0, 1))", "p.squeeze(4)", "x.unsqueeze(0)",
    "x.unsqueeze(-1)", "x.unsqueeze(4)", "T.expand_dims(x, 1) ~ x.unsqueeze(1)", "T.expand_dims(x, (0, 2)) ~ x.unsqueeze(0).unsqueeze(2)",
    "T.expand_dims(x, (-1, 0)) ~ x.unsqueeze(0).unsqueeze(3)", "T.permute(b, (2, 0, 1))", "b.permute(-1, 0, 1)", "b.permute(0, 1)", "b.permute(0, 0, 1)",
    "T.permute_dims(b, (1, 0, 2)) ~ b.permute(1, 0, 2)", "T.transpose(b, 0, 2)", "b.transpose(-1, 0)", "b.transpose(0, 3)", "T.swapaxes(b, 0, 1)", "T.swapdims(b, 1, 2)",
    "x.t()", "v.t()", "b.t()", "x.T", "b.mT", "x.H", "T.adjoint(b)", "T.matrix_transpose(b) ~ b.mT", "T.movedim(b, 0, 2)", "T.movedim(b, (0, 1), (1, 0))", "T.moveaxis(b, -1, 0)",
    "T.movedim(b, (0, 0), (1, 0))", "x.expand(4, 2, 3)", "v.expand(2, -1)", "x.expand(-1, -1)", "x.expand(2, -1, 3)", "v.expand(-1, 3)", "x.expand(2, 4)", "x[:1].expand_as(y)", "T.broadcast_to(v, (2, 3))",
    "T.broadcast_tensors(x[:1], v)", "T.broadcast_tensors(x, m)", "tuple(T.broadcast_shapes((2, 1), (3,)))", "tuple(T.broadcast_shapes((2, 1), 3))", "T.broadcast_shapes((2,), (3,))",
    "v.unfold(0, 2, 1)", "x.unfold(1, 2, 1)", "x.unfold(-1, 1, 2)", "x.unfold(0, 3, 1)", "o.unfold(0, 1, 1)", "T.diagonal(m)", "T.diagonal(b, 1, 1, 2)", "T.diagonal(b, offset=-1, dim1=2, dim2=0)",
    "T.diagonal(v)", "T.diagonal(m, 0, 0, 0)", "T.diag(v)", "T.diag(v, 1)", "T.diag(v, -2)", "T.diag(m)", "T.diag(m, -1)", "T.diag(b)", "T.diag_embed(x)",
    "T.diag_embed(x, offset=1)", "T.diag_embed(x, -1, 0, 2)", "T.tril(m)", "T.tril(m, 1)", "T.triu(m, -1)", "T.triu(b, 1)", "m.clone().tril_()", "m.clone().triu_(1)", "T.tril(v)",
    "T.tril_indices(3, 4)", "T.tril_indices(3, 3, -1)", "T.triu_indices(2, 3)", "T.triu_indices(3, 3, offset=1)", "T.as_strided(x, (2, 2), (1, 2))",
    "T.as_strided(x.detach()[:, ::2], (2, 2), (3, 2))", "T.as_strided(x.detach()[:, 1:], (5,), (1,))", "x.detach()[:, ::2].as_strided((), ())",
    "x.detach()[:, ::2].as_strided((6,), (1,))", "T.ones(3).double().expand(2, 3).detach().requires_grad_().as_strided((3,), (1,))",
    "x.detach()[:, ::2].requires_grad_().as_strided((2, 2), (2, 1), 1)", "b.detach()[..., 1].requires_grad_().as_strided((4,), (3,)) ** 2",
    "T.as_strided(x, (2,), (2,), 1)", "x.as_strided((0,), (1,), 6).sum()", "x.t().as_strided((0, 2), (2, 1), 3).sum()", "x[1:].as_strided((2,), (1,), 0).sum()", "x.contiguous()", "x.t().contiguous()", "T.clone(x.t())", "x.t().is_contiguous()", "x.stride()", "b.stride(1)", "b.t().stride()", "x.storage_offset()",
    "x[1:].storage_offset()", "x.size()", "x.size(1)", "x.size(2)", "x.numel()", "x.nelement()", "x.dim()", "x.ndimension()", "x.element_size()", "T.atleast_1d(o)", "T.atleast_2d(v)",
    "T.atleast_3d(v)", "T.atleast_3d(x)", "T.atleast_2d((v, o))", "x.clone().t_()", "x.clone().transpose_(0, 1)", "x.clone().squeeze_()", "x.clone().unsqueeze_(0)",
    "b.clone().swapaxes_(0, 1)", "b.clone().swapdims_(0, 2)", "T.positive(k)",
    "T.cat((i[0].to(T.int16), i[0, :0]))", "T.cat((x[:, :0].float(), e))", "T.cat((k, e))", "T.hstack((f[:0], i[0, :0]))",
    "T.block_diag(u, T.tensor(3, device=on))", "T.block_diag(T.tensor(1.5, device=on), f.half())",
]  # fmt: skip
