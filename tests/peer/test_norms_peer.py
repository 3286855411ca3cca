"""Normalisation beside torch: training steps, running statistics, state dicts both ways, types, layouts, gradients of gradients."""

import numpy as np
import pytest
import torch

import tritensor as tt
from tritensor import nn

pytestmark = pytest.mark.peer
LAYERS = {
    "batch 1d": (lambda n: n.BatchNorm1d(4), (6, 4)),
    "batch 1d, long": (lambda n: n.BatchNorm1d(4, momentum=None), (3, 4, 5)),
    "batch 2d": (lambda n: n.BatchNorm2d(3, eps=1e-3, momentum=0.3), (5, 3, 6, 7)),
    "batch 2d, no bias": (lambda n: n.BatchNorm2d(3, bias=False), (5, 3, 2, 2)),
    "batch 2d, wide": (lambda n: n.BatchNorm2d(20), (8, 20, 9, 9)),
    "batch 3d": (lambda n: n.BatchNorm3d(2, affine=False), (3, 2, 2, 3, 4)),
    "batch, untracked": (lambda n: n.BatchNorm2d(3, track_running_stats=False), (5, 3, 6, 7)),
    "sync": (lambda n: n.SyncBatchNorm(3), (4, 3, 5)),
    "instance 1d": (lambda n: n.InstanceNorm1d(3), (2, 3, 5)),
    "instance, one": (lambda n: n.InstanceNorm2d(3, affine=True), (3, 5, 4)),
    "instance 2d, tracked": (lambda n: n.InstanceNorm2d(3, affine=True, track_running_stats=True), (4, 3, 5, 6)),
    "instance 3d": (lambda n: n.InstanceNorm3d(2, affine=True, momentum=0.5, track_running_stats=True), (2, 2, 3, 4, 5)),
    "group": (lambda n: n.GroupNorm(2, 6), (3, 6, 5)),
    "group, images": (lambda n: n.GroupNorm(4, 16, affine=False), (3, 16, 5, 5)),
    "group, no bias": (lambda n: n.GroupNorm(3, 6, bias=False), (4, 6, 7, 7)),
    "rms": (lambda n: n.RMSNorm((3, 4)), (5, 3, 4)),
    "rms, plain": (lambda n: n.RMSNorm(4, eps=1e-2, elementwise_affine=False), (5, 3, 4)),
    "layer": (lambda n: n.LayerNorm(600), (7, 600)),
    "local response": (lambda n: n.LocalResponseNorm(4, alpha=0.1, k=2.0), (2, 7, 3, 3)),
    "local response, 3d": (lambda n: n.LocalResponseNorm(3), (2, 7, 3)),
    "cross map": (lambda n: n.CrossMapLRN2d(5, alpha=0.2), (2, 7, 3, 3)),
    "cross map, even": (lambda n: n.CrossMapLRN2d(4, alpha=0.2, beta=0.5, k=2), (2, 7, 3, 3)),
}


def close(ours, theirs, tolerance=3e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def drawn(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) + 0.5


@pytest.mark.parametrize("name", LAYERS)
def test_three_steps_and_evaluation(name):
    make, shape = LAYERS[name]
    ours, theirs = make(nn), make(torch.nn)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.state_dict()._metadata == theirs.state_dict()._metadata
    with torch.no_grad():
        for i, (p, q) in enumerate(zip(ours.parameters(), theirs.parameters(), strict=True)):
            value = drawn(p.shape, 50 + i)
            q.copy_(torch.from_numpy(value))
            p.data = tt.from_numpy(value)
    for step in range(3):
        x = drawn(shape, step)
        a, b = tt.from_numpy(x).requires_grad_(), torch.from_numpy(x).requires_grad_()
        y, z = ours(a), theirs(b)
        close(y, z)
        g = drawn(shape, step + 20)
        y.backward(tt.from_numpy(g))
        z.backward(torch.from_numpy(g))
        if not name.startswith("cross map"):  # whose gradient is not that of its values in PyTorch
            close(a.grad, b.grad, 3e-4)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, 3e-4)
    for k, v in theirs.state_dict().items():
        close(ours.state_dict()[k], v)
    ours.eval()
    theirs.eval()
    close(ours(tt.from_numpy(x)), theirs(torch.from_numpy(x)))


@pytest.mark.parametrize("kind", ["Batch", "Instance"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_lazy_layers(kind, dims):
    name, x = f"Lazy{kind}Norm{dims}d", drawn((4, 3, *(5, 2, 3)[:dims]))
    ours, theirs = getattr(nn, name)(momentum=0.2), getattr(torch.nn, name)(momentum=0.2)
    assert repr(ours) == repr(theirs)
    close(ours(tt.from_numpy(x)), theirs(torch.from_numpy(x)))
    assert repr(ours) == repr(theirs)
    assert type(ours).__name__ == type(theirs).__name__
    for k, v in theirs.state_dict().items():
        close(ours.state_dict()[k], v)


def test_state_dicts_of_either_load_in_the_other():
    def make(n):
        return n.Sequential(n.Conv2d(3, 4, 3), n.BatchNorm2d(4), n.ReLU(), n.GroupNorm(2, 4), n.InstanceNorm2d(4, track_running_stats=True))

    ours, theirs = make(nn), make(torch.nn)
    theirs(torch.from_numpy(drawn((4, 3, 6, 6))))
    ours.load_state_dict({k: tt.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    x = drawn((2, 3, 6, 6), 3)
    ours.eval()
    theirs.eval()
    close(ours(tt.from_numpy(x)), theirs(torch.from_numpy(x)))
    ours[1].running_mean += 1
    back = {k: torch.from_numpy(v.numpy()) for k, v in ours.state_dict().items()}
    theirs.load_state_dict(back)
    close(ours(tt.from_numpy(x)), theirs(torch.from_numpy(x)))


def test_versions_of_state_dicts():
    """Without num_batches_tracked: one of version 1, or of no version, loads; of version 2 it is missing."""
    for metadata, loads in (({"": {"version": 1}}, True), ({}, True), ({"": {"version": 2}}, False)):
        for n in (nn, torch.nn):
            layer = n.BatchNorm1d(3)
            state = layer.state_dict()
            del state["num_batches_tracked"]
            state._metadata = metadata
            if loads:
                layer.load_state_dict(state)
                continue
            with pytest.raises(RuntimeError, match="num_batches_tracked"):
                layer.load_state_dict(state)
    for n in (nn, torch.nn):
        with pytest.raises(RuntimeError, match="running_mean"):
            n.InstanceNorm1d(3).load_state_dict(dict(n.InstanceNorm1d(3, track_running_stats=True).state_dict()))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_types(name):
    """16-bit inputs with parameters of their type, or float32 ones."""
    x, w = drawn((6, 4, 5)), drawn(4, 1)
    for kept in {name, "float32"} if name != "float64" else {name}:
        found = []
        for lib, given in ((tt, tt.from_numpy), (torch, torch.from_numpy)):
            F, kind = lib.nn.functional, getattr(lib, name)
            v = given(w).to(getattr(lib, kept)).requires_grad_()
            r = given(w * 0).to(getattr(lib, kept)), given(w * 0 + 1).to(getattr(lib, kept))
            a = given(x).to(kind).requires_grad_()
            ys = [
                F.batch_norm(a, *r, v, v, True), F.batch_norm(a, *r, v, v), F.group_norm(a, 2, v, v), F.instance_norm(a, None, None, v, v),
                F.rms_norm(a, (5,)), F.layer_norm(a, (5,)),
            ]  # fmt: skip
            sum((y.to(lib.float64) * (i + 1)).square().sum() for i, y in enumerate(ys)).backward()
            assert all(y.dtype is kind for y in ys)
            found.append([t.detach().to(lib.float64).numpy() for t in (*ys, *r, a.grad, v.grad)])
        tolerance = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-10}[name]
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max())


def test_channels_last_stays():
    x = drawn((3, 8, 9, 10))
    found = []
    for lib, given in ((tt, tt.from_numpy), (torch, torch.from_numpy)):
        a = given(x).contiguous(memory_format=lib.channels_last).requires_grad_()
        layers = lib.nn.BatchNorm2d(8), lib.nn.GroupNorm(2, 8)
        ys = [layer(a) for layer in layers]
        assert all(y.is_contiguous(memory_format=lib.channels_last) for y in ys)
        sum((y**3).sum() for y in ys).backward()
        found.append([*[y.detach().numpy() for y in ys], a.grad.numpy(), layers[0].weight.grad.numpy(), layers[0].running_var.numpy()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


def test_converting_to_sync():
    def make(n):
        return n.Sequential(n.BatchNorm2d(3, eps=0.1, affine=False), n.Sequential(n.BatchNorm1d(2, bias=False), n.Linear(2, 2))).eval()

    ours, theirs = (lib.nn.SyncBatchNorm.convert_sync_batchnorm(make(lib.nn)) for lib in (tt, torch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [m.training for m in ours.modules()] == [m.training for m in theirs.modules()]
    assert type(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm3d(2))) is nn.SyncBatchNorm


WRONG = [
    lambda n, x: n.functional.batch_norm(x[:1, :, 0, 0], None, None, training=True),
    lambda n, x: n.functional.batch_norm(x, None, None),
    lambda n, x: n.functional.batch_norm(x, None, None, training=True, eps=0.0),
    lambda n, x: n.functional.batch_norm(x, None, None, training=True, eps=-1.0),
    lambda n, x: n.functional.batch_norm(x, x[0, 0, 0], x[0, 0, 0], training=True),
    lambda n, x: n.functional.batch_norm(x, None, None, x[0, 0, 0], training=True),
    lambda n, x: n.functional.batch_norm(x.double(), None, None, x[0, :, 0, 0], training=True),
    lambda n, x: n.functional.batch_norm(x.int(), None, None, training=True),
    lambda n, x: n.functional.instance_norm(x[:, :, :1, :1]),
    lambda n, x: n.functional.instance_norm(x, use_input_stats=False),
    lambda n, x: n.functional.group_norm(x, 2),
    lambda n, x: n.functional.group_norm(x[0, 0, 0], 1),
    lambda n, x: n.functional.group_norm(x[:1, :, 0, 0], 3),
    lambda n, x: n.functional.rms_norm(x, (3,)),
    lambda n, x: n.functional.local_response_norm(x[0, 0], 2),
    lambda n, x: n.BatchNorm2d(3)(x[0]),
    lambda n, x: n.BatchNorm1d(3)(x),
    lambda n, x: n.BatchNorm3d(3)(x),
    lambda n, x: n.BatchNorm2d(4)(x),
    lambda n, x: n.InstanceNorm1d(3)(x),
    lambda n, x: n.InstanceNorm2d(4, affine=True)(x),
    lambda n, x: n.GroupNorm(2, 3),
    lambda n, x: n.SyncBatchNorm(3)(x[:, 0, 0, 0]),
    lambda n, x: n.CrossMapLRN2d(3)(x[0]),
]


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_refusals(place):
    x = drawn((2, 3, 4, 5))
    with pytest.raises((ValueError, RuntimeError)) as theirs:
        WRONG[place](torch.nn, torch.from_numpy(x))
    with pytest.raises(type(theirs.value)) as ours:
        WRONG[place](nn, tt.from_numpy(x))
    assert "\n" not in str(ours.value)
