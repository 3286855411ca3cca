"""The same expressions in torch: making, viewing, joining, indexing tensors; values, types, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = pytest.mark.peer

RNG = np.random.default_rng(0)
INPUTS = {
    "v": RNG.standard_normal(6), "m": RNG.standard_normal((3, 4)), "c": RNG.standard_normal((2, 3, 4)), "o": RNG.standard_normal((1, 3, 1)),
    "s": np.asarray(2.5), "sq": RNG.standard_normal((4, 4)),
}  # fmt: skip
# T is the library, x the input named behind the expression
EXPRESSIONS = [
    ("x.view(-1)", "m"),
    ("x.view(2,-1,2)", "m"),
    ("x.reshape(12)", "m"),
    ("x.t().reshape(12)", "m"),
    ("x.t().reshape(2,6)", "m"),
    ("x.flatten()", "c"),
    ("x.flatten(1)", "c"),
    ("x.flatten(0,1)", "c"),
    ("x.unflatten(1,(3,-1))", "c"),
    ("T.unflatten(x,0,(2,3))", "v"),
    ("x.squeeze()", "o"),
    ("x.squeeze(0)", "o"),
    ("x.squeeze(1)", "o"),
    ("x.squeeze((0,2))", "o"),
    ("x.squeeze()", "s"),
    ("x.unsqueeze(0)", "m"),
    ("x.unsqueeze(-1)", "m"),
    ("x.unsqueeze(0)", "s"),
    ("x.t()", "m"),
    ("x.t()", "v"),
    ("x.T", "m"),
    ("x.mT", "c"),
    ("x.H", "m"),
    ("x.transpose(0,2)", "c"),
    ("x.transpose(-1,0)", "c"),
    ("T.transpose(x,0,1)", "m"),
    ("x.transpose(dim0=0,dim1=1)", "m"),
    ("x.permute(2,0,1)", "c"),
    ("x.permute((2,0,1))", "c"),
    ("T.permute(x,(1,0))", "m"),
    ("x.movedim(0,2)", "c"),
    ("x.movedim((0,1),(2,0))", "c"),
    ("T.moveaxis(x,0,1)", "c"),
    ("x.swapaxes(0,1)", "c"),
    ("x.swapdims(0,1)", "c"),
    ("x.expand(2,3,2)", "o"),
    ("x.expand_as(T.zeros(2,3,5))", "o"),
    ("x.broadcast_to((2,3,2))", "o"),
    ("T.broadcast_to(x,(2,3))", "s"),
    ("x.narrow(1,1,2)", "c"),
    ("x.narrow(1,-2,2)", "c"),
    ("x.select(1,-1)", "c"),
    ("x.chunk(2)", "v"),
    ("x.chunk(4)", "v"),
    ("x.chunk(2,1)", "m"),
    ("x.chunk(5,1)", "m"),
    ("x.split(4)", "v"),
    ("x.split([1,2,3])", "v"),
    ("x.split(2,dim=1)", "m"),
    ("T.split(x,2,1)", "m"),
    ("x.tensor_split(4)", "v"),
    ("x.tensor_split((1,3))", "v"),
    ("x.tensor_split([1,-1])", "v"),
    ("x.unbind()", "m"),
    ("x.unbind(1)", "m"),
    ("x.unfold(0,3,2)", "v"),
    ("x.unfold(1,2,1)", "c"),
    ("x.diagonal()", "m"),
    ("x.diagonal(1,0,2)", "c"),
    ("x.diagonal(-1)", "m"),
    ("x.diag()", "v"),
    ("x.diag(1)", "v"),
    ("x.diag()", "m"),
    ("x.diag(-1)", "m"),
    ("T.diag_embed(x,1)", "m"),
    ("T.diag_embed(x,0,0,2)", "m"),
    ("x.as_strided((2,2),(1,2))", "v"),
    ("x.as_strided((2,2),(1,2),1)", "v"),
    ("x.as_strided((3,3),(1,1))", "m"),
    ("x.t().as_strided((3,3),(1,1))", "m"),
    ("x.view_as(T.zeros(2,6))", "m"),
    ("x.reshape_as(T.zeros(2,6))", "m"),
    ("x.ravel()", "c"),
    ("T.cat((x,x),1)", "m"),
    ("T.cat([x,x],-1)", "m"),
    ("T.concat([x,x])", "m"),
    ("T.concatenate([x,x],axis=1)", "m"),
    ("T.stack([x,x])", "m"),
    ("T.stack([x,x],-1)", "m"),
    ("T.hstack((x,x))", "m"),
    ("T.hstack((x,x))", "v"),
    ("T.vstack((x,x))", "v"),
    ("T.dstack((x,x))", "m"),
    ("T.dstack((x,x))", "v"),
    ("T.column_stack((x,x))", "v"),
    ("T.atleast_2d(x)", "v"),
    ("T.atleast_3d(x)", "m"),
    ("x.repeat(2,3)", "m"),
    ("x.repeat(2,1,3)", "m"),
    ("x.repeat_interleave(2)", "m"),
    ("x.repeat_interleave(2,dim=1)", "m"),
    ("T.repeat_interleave(x,T.tensor([1,0,2]),dim=0)", "m"),
    ("x.tile((2,))", "m"),
    ("x.tile(2,2)", "m"),
    ("x.flip(0)", "m"),
    ("x.flip(0,1)", "m"),
    ("x.flip((0,))", "m"),
    ("T.flip(x,[0,1])", "m"),
    ("x.fliplr()", "m"),
    ("x.flipud()", "m"),
    ("x.roll(1)", "m"),
    ("x.roll(1,0)", "m"),
    ("x.roll((1,-2),(0,1))", "m"),
    ("x.rot90()", "m"),
    ("x.rot90(2)", "m"),
    ("x.rot90(3)", "m"),
    ("x.rot90(-1,(1,0))", "m"),
    ("T.tril(x)", "m"),
    ("x.triu(1)", "m"),
    ("x[1]", "m"),
    ("x[:,1]", "m"),
    ("x[...,None]", "m"),
    ("x[[0,2]]", "m"),
    ("x[T.tensor([0,2]),T.tensor([1,1])]", "m"),
    ("x[x>0]", "m"),
    ("x[1:,[0,2]]", "m"),
    ("x[None,T.tensor([1])]", "m"),
    ("x.gather(1,T.tensor([[0],[1],[2]]))", "m"),
    ("x.scatter(1,T.tensor([[0],[1],[2]]),5.0)", "m"),
    ("x.index_select(0,T.tensor([2,0]))", "m"),
    ("x.index_add(0,T.tensor([2,0,2]),x)", "m"),
    ("x.index_add(0,T.tensor([2,0,2]),x,alpha=2)", "m"),
    ("x.index_fill(1,T.tensor([2,0]),-1)", "m"),
    ("x.index_copy(0,T.tensor([2,0]),x[:2])", "m"),
    ("x.index_put((T.tensor([0,1]),T.tensor([0,1])),T.tensor([9.0,8.0]))", "m"),
    ("x.take(T.tensor([0,5]))", "m"),
    ("x.take_along_dim(T.tensor([[0],[1],[2]]),1)", "m"),
    ("T.take_along_dim(x,T.tensor([3,1]))", "m"),
    ("x.masked_fill(x>0,0)", "m"),
    ("x.masked_select(x>0)", "m"),
    ("x.masked_scatter(x>0,T.arange(20.0))", "m"),
    ("x.nonzero()", "m"),
    ("T.nonzero(x>0,as_tuple=True)", "m"),
    ("T.argwhere(x>0)", "m"),
    ("T.where(x>0)", "m"),
    ("T.arange(5)", "v"),
    ("T.arange(1,5)", "v"),
    ("T.arange(1,2.5,0.5)", "v"),
    ("T.arange(5.0)", "v"),
    ("T.arange(0,10,3,dtype=T.float32)", "v"),
    ("T.linspace(0,1,5)", "v"),
    ("T.linspace(3,10,steps=4)", "v"),
    ("T.logspace(0,2,3)", "v"),
    ("T.eye(3)", "v"),
    ("T.eye(3,2)", "v"),
    ("T.full((2,3),7)", "v"),
    ("T.full((2,3),1.5)", "v"),
    ("T.full((2,),True)", "v"),
    ("T.full_like(x,3)", "m"),
    ("T.zeros(2,3,dtype=T.int32)", "v"),
    ("T.zeros([2,3])", "v"),
    ("T.ones(())", "v"),
    ("T.zeros(T.Size([2,2]))", "v"),
    ("T.ones_like(x,dtype=T.float64)", "m"),
    ("x.new_zeros(2,2)", "m"),
    ("x.new_full((2,),3)", "m"),
    ("x.new_tensor([1,2])", "m"),
    ("x.new_ones((2,),dtype=T.int64)", "m"),
    ("T.tensor([1,2])", "v"),
    ("T.tensor([[1.0,2],[3,4]])", "v"),
    ("T.tensor(True)", "v"),
    ("T.tensor([True,False])", "v"),
    ("T.tensor([])", "v"),
    ("T.tensor([x[0].detach(),x[1].detach()])", "v"),
    ("T.tensor(3.5,dtype=T.float64)", "v"),
    ("T.as_tensor([1,2,3])", "v"),
    ("T.tril_indices(3,3)", "v"),
    ("T.triu_indices(3,4,1)", "v"),
    ("T.meshgrid(x,x[:2],indexing='ij')", "v"),
    ("T.meshgrid(x,x[:2],indexing='xy')", "v"),
    ("T.broadcast_tensors(x,T.zeros(2,3,4))", "m"),
    ("x.scatter_add(0,T.tensor([[0,1,2,0],[0,0,0,0],[1,1,1,1]]),x)", "m"),
    ("x.expand(4,3,5)", "o"),
    ("x.expand(5,-1,-1,4)", "o"),
    ("T.dropout(x,0.0,True)", "m"),
    ("x.squeeze(-1).expand(2,-1,3)", "o"),
]


def evaluate(library: Any, expression: str, name: str) -> tuple[list[np.ndarray], list[str], np.ndarray | None]:
    """Values, types and the gradient of a weighted sum of all outputs."""
    x = library.from_numpy(INPUTS[name].astype(np.float32)).requires_grad_()
    out = eval(expression, {"T": library, "x": x})
    outs = list(out) if isinstance(out, tuple | list) else [out]
    total = None
    for i, y in enumerate(outs):
        if y.requires_grad:
            weight = np.asarray(np.cos(np.arange(y.numel(), dtype=np.float32) + i)).reshape(tuple(y.shape))
            term = (y * library.from_numpy(weight)).sum()
            total = term if total is None else total + term
    if total is not None:
        total.backward()
    types = [str(y.dtype).rsplit(".", 1)[-1] for y in outs]
    return [y.detach().numpy() for y in outs], types, None if x.grad is None else x.grad.numpy()


@pytest.mark.parametrize(("expression", "name"), EXPRESSIONS)
def test_as_torch(expression: str, name: str) -> None:
    values, types, gradient = evaluate(tt, expression, name)
    want_values, want_types, want_gradient = evaluate(torch, expression, name)
    assert types == want_types
    assert len(values) == len(want_values)
    for got, want in zip(values, want_values, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    assert (gradient is None) == (want_gradient is None)
    if gradient is not None:
        np.testing.assert_allclose(gradient, want_gradient, rtol=1e-5, atol=1e-5)
