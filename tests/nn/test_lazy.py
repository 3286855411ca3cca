"""Lazy modules: parameters without a shape, what they refuse, and that the first batch makes them whole."""

import copy
import pickle

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import CheckpointError
from tritensor.nn.layers.lazy import LazyModuleMixin
from tritensor.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter, is_lazy


class Scaled(nn.Module):
    """input * scale + shift, a number each for every feature."""

    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(tt.ones(features))
        self.register_buffer("shift", tt.zeros(features))

    def forward(self, input, twice=False):
        return (input * self.scale + self.shift) * (2 if twice else 1)


class LazyScaled(LazyModuleMixin, Scaled):
    cls_to_become = Scaled

    def __init__(self, device=None, dtype=None):
        super().__init__(0)
        self.scale = UninitializedParameter(device=device, dtype=dtype)
        self.shift = UninitializedBuffer(device=device, dtype=dtype)

    def initialize_parameters(self, input, twice=False):
        if self.has_uninitialized_params():
            self.scale.materialize(input.shape[-1])
            self.shift.materialize((input.shape[-1],))
            nn.init.ones_(self.scale)
            self.shift.zero_()


def test_the_first_batch_makes_a_module_whole():
    net = nn.Sequential(LazyScaled(), nn.Identity())
    scale = net[0].scale
    assert is_lazy(scale)
    assert repr(scale) == "<UninitializedParameter>"
    assert net[0](tt.ones(2, 3), twice=True).tolist() == [[2.0] * 3] * 2
    assert type(net[0]) is Scaled
    assert type(scale) is Parameter
    assert net[0].scale is scale
    assert list(net.state_dict()) == ["0.scale", "0.shift"]
    net(tt.ones(2, 3)).sum().backward()
    assert scale.grad.tolist() == [2.0] * 3


def test_copies_and_casts_stay_lazy():
    net = LazyScaled().double()
    assert net.scale.dtype == tt.float64
    assert net.scale.requires_grad
    assert not net.shift.requires_grad
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.has_uninitialized_params()
        assert other.scale is not net.scale
        assert other(tt.ones(1, 2, dtype=tt.float64)).dtype == tt.float64
        assert type(other) is Scaled
    assert net.has_uninitialized_params()


def test_state_dicts_of_modules_that_ran_and_that_did_not():
    ran = LazyScaled()
    ran(tt.ones(1, 4))
    waiting = LazyScaled()
    assert waiting.load_state_dict(LazyScaled().state_dict()).missing_keys == []
    assert waiting.has_uninitialized_params()
    waiting.load_state_dict(ran.state_dict())
    assert waiting.scale.tolist() == [1.0] * 4
    assert type(waiting(tt.ones(1, 4))) is tt.Tensor
    assert type(waiting) is Scaled
    with pytest.raises(RuntimeError, match="call forward first"):
        ran.load_state_dict(LazyScaled().state_dict())
    with pytest.raises(CheckpointError, match="size mismatch for scale"):
        ran.load_state_dict({"scale": tt.ones(3), "shift": tt.ones(4)})


def test_what_is_refused_before_the_shape_is_known():
    lazy = UninitializedParameter()
    for use in (lambda: lazy + 1, lambda: lazy.sum(), lambda: nn.functional.linear(tt.ones(2, 3), lazy), lambda: lazy.tolist()):
        with pytest.raises(ValueError, match="uninitialized parameter: the shape of this UninitializedParameter is not known yet"):
            use()
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = lazy.shape

    class Half(LazyScaled):
        def initialize_parameters(self, input):
            self.scale.materialize(2)

    with pytest.raises(RuntimeError, match="has not been fully initialized: shift still without a shape"):
        Half()(tt.ones(1, 2))

    class Unsaid(LazyModuleMixin, nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="not implemented for Unsaid"):
        Unsaid()(tt.ones(1))


@pytest.mark.parametrize(
    ("lazy", "whole", "shape"),
    [
        (nn.LazyLinear(3), nn.Linear(4, 3), (2, 4)),
        (nn.LazyConv2d(6, 2, groups=2), nn.Conv2d(4, 6, 2, groups=2), (1, 4, 3, 3)),
        (nn.LazyConvTranspose1d(6, 2, groups=2), nn.ConvTranspose1d(4, 6, 2, groups=2), (1, 4, 3)),
        (nn.LazyBatchNorm1d(), nn.BatchNorm1d(4), (2, 4)),
        (nn.LazyInstanceNorm1d(), nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (2, 4, 5)),
        (nn.LazyInstanceNorm1d(affine=False, track_running_stats=False), nn.InstanceNorm1d(4), (2, 4, 5)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_a_state_dict_brought_is_counted_as_well(lazy, whole, shape):
    lazy.load_state_dict(whole.state_dict())
    lazy(tt.ones(shape))
    assert type(lazy) is type(whole)
    assert repr(lazy) == repr(whole)
