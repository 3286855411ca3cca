"""Selective checkpointing: what a policy chooses is kept and not computed again; gradients are bit-equal whatever it chooses."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import tritensor as tt
from tritensor.nn import GELU, Dropout, LayerNorm, Linear, Sequential, Softmax
from tritensor.ops.table import Ops, ops
from tritensor.utils.checkpoint import (
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

aten = tt.ops.aten
W = tt.ones(4, 4)


def contexts(policy: Any, **settings: Any) -> Any:
    return functools.partial(create_selective_checkpoint_contexts, policy, **settings)


def selective(function: Any, x: tt.Tensor, policy: Any, **settings: Any) -> Any:
    return checkpoint(function, x, use_reentrant=False, context_fn=contexts(policy, **settings))


def gradients(device: str, run: Any) -> list[tt.Tensor]:
    tt.manual_seed(0)
    model = Sequential(Linear(4, 8), GELU(), Dropout(0.5), Linear(8, 4), LayerNorm(4), Softmax(-1)).to(device)
    x = (tt.arange(12.0).view(3, 4) / 10).to(device).requires_grad_()
    (run(model, x) * tt.arange(4.0).to(device)).sum().backward()
    return [x.grad, *[p.grad for p in model.parameters()]]


POLICIES = {
    "a list": [aten.addmm.default, aten.gelu.default],
    "everything": lambda ctx, op, *args, **kwargs: True,
    "nothing": lambda ctx, op, *args, **kwargs: CheckpointPolicy.PREFER_RECOMPUTE,
    "the dropout": lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE if "dropout" in str(op) else CheckpointPolicy.MUST_RECOMPUTE,
}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", POLICIES)
def test_gradients_are_bit_equal(name: str, device: str) -> None:
    plain = gradients(device, lambda model, x: model(x))
    other = gradients(device, lambda model, x: selective(model, x, POLICIES[name]))
    assert all(tt.equal(a, b) for a, b in zip(plain, other, strict=True))


def test_a_policy_is_asked_once_of_each_op_by_pytorchs_names() -> None:
    seen = []

    def policy(ctx, op, *args, **kwargs):
        assert not ctx.is_recompute
        assert isinstance(ctx.op_output, tt.Tensor)
        seen.append(str(op).split(".")[1])
        return False

    gradients("cpu", lambda model, x: selective(model, x, policy))
    assert seen == ["addmm", "gelu", "native_dropout", "addmm", "native_layer_norm", "_softmax"]


def test_what_is_kept_is_not_computed_again() -> None:
    """Were it computed again, it would meet the weight that was changed since."""
    for kept, expected in (([aten.mm.default], 4.0), ([], 8.0)):
        weight, x = W.clone(), tt.ones(1, 4, requires_grad=True)
        y = selective(lambda x: tt.mm(x, weight).square(), x, kept)  # noqa: B023  called at once, and again below
        weight.data.mul_(2)
        (g,) = tt.autograd.grad(y.sum(), x)
        assert g[0, 0].item() == 2 * expected * 4 * 2  # 2 y times the sum of the weight's row, as it is now


def test_the_calls_of_ops_are_as_before_afterwards() -> None:
    before, bind = dict(vars(ops)), Ops.bind
    y = selective(lambda x: x.sigmoid(), tt.ones(2, requires_grad=True), [aten.sigmoid.default])
    y.sum().backward()
    assert Ops.bind is bind
    assert not [n for n, call in vars(ops).items() if "unwatched" in getattr(call, "__dict__", ())]
    assert all(vars(ops)[n] is call for n, call in before.items())


def test_a_second_backward_through_what_was_kept_is_refused() -> None:
    s = selective(lambda x: tt.mm(x, W).sigmoid(), tt.ones(3, 4, requires_grad=True), [aten.mm.default, aten.sigmoid.default]).sum()
    s.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        s.backward()


def written(x: tt.Tensor) -> tt.Tensor:
    h = tt.mm(x, W)
    y = h.sigmoid()
    with tt.no_grad():
        h.add_(1)
    return y * 2


def test_a_kept_result_that_was_written_is_refused_unless_it_is_allowed() -> None:
    y = selective(written, tt.ones(3, 4, requires_grad=True), [aten.mm.default])
    with pytest.raises(RuntimeError, match=r"has been mutated: the result of aten\.mm\.default"):
        y.sum().backward()
    selective(written, tt.ones(3, 4, requires_grad=True), [aten.mm.default], allow_cache_entry_mutation=True).sum().backward()


def test_other_ops_in_the_second_run_are_told() -> None:
    runs = []

    def function(x):
        runs.append(1)
        return (tt.mm(x, W) if len(runs) == 1 else tt.mm(tt.mm(x, W), W)).sigmoid()

    y = selective(function, tt.ones(3, 4, requires_grad=True), [aten.mm.default])
    with pytest.raises(RuntimeError, match=r"aten.mm.default invocation index 1 .* not found in storage"):
        y.sum().backward()


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"got aten.mm of type Packet: give a specific one, ops.aten.mm.default"):
        create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(TypeError, match="either a function or a list of ops, not a int"):
        create_selective_checkpoint_contexts(3)
    x = tt.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="debug=True is incompatible"):
        checkpoint(tt.exp, x, use_reentrant=False, debug=True, context_fn=contexts([]))
    with pytest.raises(ValueError, match="Unexpected keyword arguments: color"):
        checkpoint_sequential([tt.exp], 1, x, use_reentrant=False, color=1)
    with pytest.raises(NotImplementedError, match=r"ops\.aten\.no_such"):
        aten.no_such.default()


def test_an_overload_is_called_by_its_name() -> None:
    assert aten.mm.default(W, W).tolist() == (W @ W).tolist()
    assert aten.add.Tensor != aten.add.default
    assert aten.add.Tensor.overloadpacket is aten.add
    assert (str(aten.mm.default), repr(aten.mm.default)) == ("aten.mm.default", "<OpOverload(op='aten.mm', overload='default')>")


def test_a_group_computes_again_once_for_several_backwards() -> None:
    runs = []

    def function(a, b):
        runs.append(1)
        return a.sin(), b.sin()

    a, b = tt.ones(2, requires_grad=True), tt.ones(3, requires_grad=True)
    for expected, group in ((3, False), (2, True)):
        runs.clear()
        y, z = checkpoint(function, a, b, use_reentrant=False, early_stop=False)
        if group:
            with GraphExecGroup():
                y.sum().backward()
                z.sum().backward()
                with pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
                    pass
        else:
            y.sum().backward()
            z.sum().backward()
        assert len(runs) == expected
    assert tt.allclose(a.grad, 2 * a.cos())
