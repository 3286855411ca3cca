"""Products of vectors and matrices."""

from __future__ import annotations

EXPRESSIONS = [
    "x @ m", "m @ v", "v @ m", "v @ v", "b @ m", "m @ b", "b @ b", "x @ x", "o @ v", "i @ i.t()", "T.matmul(x, m)", "T.mm(x, m)", "T.mm(x, v)", "T.mv(m, v)", "T.bmm(b, b)", "T.bmm(b, m)", "T.dot(v, v)", "T.dot(x, v)", "T.vdot(v, v)",
    "T.inner(x, y)", "T.inner(v, v)", "T.outer(v, v[:2])", "T.ger(v, v)", "T.addmm(x, x, m)", "T.addmm(v, x, m, beta=2, alpha=-1)", "T.addmv(v, m, v, alpha=2)", "T.addr(m, v, v, beta=0.5)", "T.addbmm(m, b, b)", "T.baddbmm(b, b, b, beta=2, alpha=3)",
    "m.clone().addmm_(m, m)", "v.clone().addmv_(m, v)", "m.clone().addr_(v, v)", "m.clone().addbmm_(b, b)", "b.clone().baddbmm_(b, b)", "T.addmm(x, x, m, beta=0)", "T.tensordot(x, m, 1)", "T.tensordot(x, y, 2)", "T.tensordot(x, m, ([1], [0]))",
    "T.tensordot(b, x, dims=([0, 1], [0, 1]))", "T.einsum('ij,jk->ik', x, m)", "T.einsum('bij,bjk->bik', b, b)", "T.einsum('ii->i', m)", "T.einsum('ij->', x)", "T.einsum('...j,j', x, v)", "T.einsum('ij,ij->j', x, y)", "T.einsum('ij,jk', x, x)",
    "T.spmm(x, m)", "T.dsmm(m, m)", "T.spmm(x, v)", "T.addmm(0.5, x, 2.0, x, m)", "T.addmm(0.5, x, x, m)", "m.clone().addmm_(0.5, 2, m, m)", "m.addmm(0.5, m, m)",
    "T.addmv(0.5, v, 2, m, v)", "v.clone().addmv_(2, m, v)", "T.addr(0.5, m, 2, v, v)", "m.clone().addr_(0.5, 3, v, v)", "T.addbmm(0.5, m, 2, b, b)", "m.addbmm(0.5, 2, b, b)",
    "T.baddbmm(0.5, b, 2, b, b)", "b.clone().baddbmm_(0.5, b, b)", "T.addmm(0.5, x, 2.0, x, m, beta=1)", "T.chain_matmul(x, m, m)", "F.linear(x, m)", "F.linear(x, m, v)", "F.linear(x, x, v)", "F.bilinear(x, y, b.expand(2, 3, 3))",
    "F.grouped_mm(m.float().repeat(2, 4), b.float().repeat(1, 4, 4), offs=T.tensor([2, 6], dtype=T.int32))", "F.grouped_mm(b.detach().float().repeat(1, 4, 4), m.detach().float().repeat(4, 4), offs=T.tensor([4, 12], dtype=T.int32))",
    "F.grouped_mm(m.float().repeat(4, 4), m.float().repeat(4, 4), offs=T.tensor([4, 4, 12], dtype=T.int32))", "F.grouped_mm(b.float().repeat(1, 4, 4), b.float().repeat(1, 4, 4))",
    "F.grouped_mm(m.float(), b.float(), offs=T.tensor([1, 3]))", "F.grouped_mm(m.float(), b.float())",
]  # fmt: skip
