"""Hooks of optimizers, named parameters, and state that a subclass shapes as it likes."""

import copy
import pickle

import pytest

import tritensor as tt
from tritensor import nn, optim


def parameter():
    p = nn.Parameter(tt.zeros(2))
    p.grad = tt.ones(2)
    return p


class Own(optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


class Alone(optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})

    def step(self, closure=None):
        return closure() if closure else "stepped"


@pytest.mark.parametrize("kind", [optim.SGD, optim.AdamW, Own, Alone])
def test_step_hooks_of_one_and_of_all(kind):
    seen = []
    opt, other = kind([parameter()]), kind([parameter()])
    handles = [
        opt.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", o, args, kwargs))),
        opt.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", o, args, kwargs))),
        optim.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append(("every pre", o, args, kwargs))),
        optim.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append(("every post", o, args, kwargs))),
    ]
    try:
        opt.step()
        assert [s[0] for s in seen] == ["every pre", "pre", "post", "every post"]
        assert all(s[1] is opt and s[2] == (opt,) and s[3] == {} for s in seen)
        seen.clear()
        other.step(closure=lambda: 3)
        assert [s[0] for s in seen] == ["every pre", "every post"]
        assert list(seen[0][3]) == ["closure"]
    finally:
        for handle in handles:
            handle.remove()
    seen.clear()
    opt.step()
    other.step()
    assert seen == []


def test_a_pre_hook_may_change_the_arguments():
    opt = Alone([parameter()])
    handle = opt.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 5), {}))
    assert opt.step() == 5
    handle.remove()
    with opt.register_step_pre_hook(lambda o, args, kwargs: 3), pytest.raises(RuntimeError, match=r"must return None or a pair"):
        opt.step()
    assert opt.step() == "stepped"


def test_a_hook_may_remove_itself():
    opt = Alone([parameter()])
    count = []

    def once(*_):
        count.append(1)
        handle.remove()

    handle = opt.register_step_post_hook(once)
    opt.step()
    opt.step()
    assert count == [1]


def test_hooks_around_state_dicts():
    opt = optim.SGD([parameter()], lr=0.1, momentum=0.9)
    seen = []
    opt.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    opt.register_state_dict_post_hook(lambda o, found: seen.append("post"))
    opt.register_state_dict_post_hook(lambda o, found: {**found, "version": 2}, prepend=True)
    opt.register_load_state_dict_pre_hook(lambda o, found: seen.append(found.pop("version")))
    opt.register_load_state_dict_pre_hook(lambda o, found: {**found, "state": {}})
    opt.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    opt.step()
    saved = opt.state_dict()
    opt.load_state_dict(saved)
    assert seen == ["pre", "post", 2, "loaded"]
    assert saved["version"] == 2, "the caller's dict is not touched"
    assert opt.state == {}


def test_hooks_are_not_copied():
    opt = optim.Adam([parameter()])
    opt.register_step_pre_hook(lambda *_: None)
    opt.step()
    for other in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        assert other._hooks is None
        (p,) = other.param_groups[0]["params"]
        p.grad = tt.ones(2)
        other.step()
        assert other.state[p]["step"] == 2


def test_named_parameters():
    net = nn.Linear(2, 1)
    net(tt.ones(1, 2)).sum().backward()
    opt = optim.SGD(net.named_parameters(), lr=0.1)
    assert opt.param_groups[0]["param_names"] == ["weight", "bias"]
    assert opt.param_groups[0]["params"] == [net.weight, net.bias]
    before = net.bias.item()
    opt.step()
    assert net.bias.item() == pytest.approx(before - 0.1)
    saved = opt.state_dict()
    assert saved["param_groups"][0]["param_names"] == ["weight", "bias"]
    plain = optim.SGD(net.parameters(), lr=0.1)
    named = optim.SGD([{"params": [("w", net.weight)]}, {"params": [("b", net.bias)], "lr": 1.0}])
    assert [g["param_names"] for g in named.param_groups] == [["w"], ["b"]]
    named = optim.SGD([("w", net.weight), ("b", net.bias)])
    named.load_state_dict(plain.state_dict())
    assert named.param_groups[0]["param_names"] == ["w", "b"]
    named.load_state_dict(saved)
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]
    for refused in (lambda: optim.SGD([("w", net.weight), net.bias]), lambda: plain.add_param_group({"params": [("x", parameter())]})):
        with pytest.raises(ValueError, match="should be with/without names"):
            refused()


def test_a_group_is_the_dict_that_was_given():
    group = {"params": parameter(), "lr": 0.5}
    opt = optim.SGD([group])
    assert opt.param_groups[0] is group
    group["lr"] = 1.0
    opt.step()
    assert group["params"][0].tolist() == [-1, -1]


def test_zeroed_gradients_stay_the_same_tensor():
    p = parameter()
    g = p.grad
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert p.grad is g
    assert g.tolist() == [0, 0]
    whole = tt.ones(4)
    p.grad = whole[2:]  # a gradient that is a window on a larger buffer
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert whole.tolist() == [1, 1, 0, 0]
    p.grad = (p * 2).clone()
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert p.grad.is_leaf
    assert not p.grad.requires_grad


def test_state_of_any_shape_is_loaded():
    class Factored(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 1.0})

        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                self.state[p].update(row=tt.ones(2), pair=[tt.ones(3), 4], deep={"col": tt.ones(5), "n": 1})

    p = nn.Parameter(tt.zeros(2, 3, dtype=tt.float64))
    opt = Factored([p])
    opt.step()
    other = Factored([p])
    other.load_state_dict(opt.state_dict())
    found = other.state[p]
    assert (found["row"].dtype, found["pair"][0].dtype, found["deep"]["col"].dtype) == (tt.float64,) * 3
    assert (found["pair"][1], found["deep"]["n"]) == (4, 1)
    assert found["row"] is not opt.state[p]["row"]


def test_a_tensor_that_retains_its_gradient_can_be_optimized():
    p = nn.Parameter(tt.ones(2)) * 2
    p.retain_grad()
    assert optim.SGD([p]).param_groups[0]["params"][0] is p
