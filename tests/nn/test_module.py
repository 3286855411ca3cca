"""Module: registration, walking, state, moving, copying, printing."""

import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import CheckpointError, DeviceError, DTypeError, GradError


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.again = self.a


def values(*numbers):
    return tt.tensor([float(n) for n in numbers])


def test_parameter_is_a_leaf_that_shares_memory():
    data = values(1, 2)
    p = nn.Parameter(data)
    assert isinstance(p, tt.Tensor)
    assert p.is_leaf
    assert p.requires_grad
    assert repr(p) == "Parameter containing:\ntensor([1., 2.], requires_grad=True)"
    data[0] = 5.0
    assert p.detach().tolist() == [5.0, 2.0]
    assert type(p * 2) is tt.Tensor
    assert nn.Parameter(values(1), requires_grad=False).requires_grad is False
    assert tuple(nn.Parameter().shape) == (0,)


def test_parameter_of_integers_is_refused():
    with pytest.raises(GradError, match="int64 has no gradient"):
        nn.Parameter(tt.tensor([1, 2]))


def test_parameter_keeps_class_attributes_and_flag_through_copy_and_pickle():
    p = nn.Parameter(values(1, 2), requires_grad=False)
    p.tag = "mine"
    for again in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(again) is nn.Parameter
        assert again.tolist() == [1.0, 2.0]
        assert again.requires_grad is False
        assert again.tag == "mine"
        assert again.data_ptr() != p.data_ptr()


def test_assignment_registers():
    m = nn.Module()
    m.p = nn.Parameter(values(1))
    m.child = nn.Linear(1, 1)
    m.b = nn.Buffer(values(2))
    m.t = nn.Buffer(values(3), persistent=False)
    m.plain = values(4)
    assert [n for n, _ in m.named_parameters()] == ["p", "child.weight", "child.bias"]
    assert [n for n, _ in m.named_buffers()] == ["b", "t"]
    assert list(m.state_dict()) == ["p", "b", "child.weight", "child.bias"]
    m.b = values(7)  # a tensor takes a buffer's place and stays registered
    assert m.get_buffer("b").tolist() == [7.0]
    m.p = None
    assert m.p is None
    assert list(m.parameters()) == list(m.child.parameters())
    m.child = nn.Parameter(values(0))  # another kind under the same name replaces the first
    assert list(m.children()) == []
    del m.b
    assert not hasattr(m, "b")
    del m.plain
    with pytest.raises(AttributeError, match="plain"):
        _ = m.plain
    assert {"p", "child", "t"} <= set(dir(m))


def test_walks_count_shared_parts_once():
    m = Tied()
    assert [n for n, _ in m.named_parameters()] == ["a.weight"]
    assert [n for n, _ in m.named_parameters(remove_duplicate=False)] == ["a.weight", "b.weight", "again.weight"]
    assert [n for n, _ in m.named_modules()] == ["", "a", "b"]
    assert [n for n, _ in m.named_modules(prefix="net", remove_duplicate=False)] == ["net", "net.a", "net.b", "net.again"]
    assert [n for n, _ in m.named_children()] == ["a", "b"]
    assert list(m.parameters(recurse=False)) == []
    assert list(m.state_dict()) == ["a.weight", "b.weight", "again.weight"]
    assert [n for n, _ in m.named_parameters(prefix="net")] == ["net.a.weight"]


def test_look_up_by_path():
    m = nn.Sequential(nn.Sequential(nn.Linear(2, 3)), nn.ReLU())
    assert m.get_submodule("0.0") is m[0][0]
    assert m.get_submodule("") is m
    assert m.get_parameter("0.0.weight") is m[0][0].weight
    with pytest.raises(AttributeError, match="Sequential has no attribute `7`"):
        m.get_submodule("0.7")
    with pytest.raises(AttributeError, match=r"`weight` is not an nn.Module"):
        m.get_submodule("0.0.weight")
    with pytest.raises(AttributeError, match="Linear has no parameter `wait`"):
        m.get_parameter("0.0.wait")


def test_state_dict_of_lenet():
    expected = [f"{layer}.{part}" for layer in ("conv1", "conv2", "fc1", "fc2", "fc3") for part in ("weight", "bias")]
    net = LeNet()
    found = net.state_dict()
    assert list(found) == expected
    assert tuple(found["conv2.weight"].shape) == (16, 6, 5, 5)
    assert not found["fc1.weight"].requires_grad
    assert found["fc1.weight"].data_ptr() == net.fc1.weight.data_ptr()
    assert net.state_dict(keep_vars=True)["fc1.weight"] is net.fc1.weight
    assert list(net.fc1.state_dict(prefix="x.")) == ["x.weight", "x.bias"]


class Third(nn.Module):
    """The third form of what it saves; it reads the number back."""

    _version = 3

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.read = []

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        self.read.append(local_metadata.get("version"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def test_a_state_dict_knows_the_version_of_every_module():
    net = nn.Sequential(Third(), nn.ReLU())
    found = net.state_dict()
    assert type(found) is OrderedDict
    assert type(found._metadata) is OrderedDict
    assert found._metadata == {"": {"version": 1}, "0": {"version": 3}, "0.inner": {"version": 1}, "1": {"version": 1}}
    assert list(net[0].state_dict(prefix="x.")._metadata) == ["x", "x.inner"]
    given = {}
    assert net.state_dict(destination=given) is given  # a plain dict takes no versions
    for saved in (found, pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        net.load_state_dict(saved)
    net.load_state_dict(dict(found))
    assert net[0].read == [3, 3, 3, None]
    odd = net.state_dict()
    odd._metadata = {"0": "no dict"}
    net.load_state_dict(odd)
    assert net[0].read[-1] is None


def test_hooks_see_the_versions():
    m, seen = Third(), []
    m.register_state_dict_post_hook(lambda module, found, prefix, local: local.update(more=1))
    m.register_load_state_dict_pre_hook(lambda module, found, prefix, local, *_: seen.append((local["version"], found._metadata)))
    found = m.state_dict()
    assert found._metadata[""] == {"version": 3, "more": 1}
    m.load_state_dict(found)
    assert seen == [(3, found._metadata)]
    assert "plan" not in found._metadata[""]


def test_load_state_dict_copies_and_casts():
    a, b = LeNet(), LeNet()
    before = b.fc1.weight
    result = b.load_state_dict(a.state_dict())
    assert result == ([], [])
    assert str(result) == "<All keys matched successfully>"
    assert b.fc1.weight is before
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert np.array_equal(x.detach().numpy(), y.detach().numpy())
    half = nn.Linear(2, 1).half()
    half.load_state_dict({"weight": np.array([[1.5, 2.5]]), "bias": tt.tensor([0.25])})
    assert half.weight.dtype == tt.float16
    assert half.weight.tolist() == [[1.5, 2.5]]


def test_load_state_dict_says_all_that_is_wrong_and_copies_nothing():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = [p.detach().clone().tolist() for p in net.parameters()]
    given = {"0.weight": tt.zeros(3, 2), "0.bais": tt.zeros(3), "1.weight": tt.zeros(4, 4), "1.bias": tt.zeros(1), "zzz": tt.zeros(1)}
    with pytest.raises(CheckpointError) as caught:
        net.load_state_dict(given)
    text = str(caught.value)
    assert "Error(s) in loading state_dict for Sequential (nothing was loaded)" in text
    assert 'Missing key(s) in state_dict: "0.bias".' in text
    assert 'Unexpected key(s) in state_dict: "zzz", "0.bais". Did you mean "0.bias" for "0.bais"?' in text
    assert "size mismatch for 1.weight: copying a param with shape (4, 4) from checkpoint, the shape in current model is (1, 3)." in text
    assert isinstance(caught.value, RuntimeError)
    assert [p.tolist() for p in net.parameters()] == before
    with pytest.raises(CheckpointError, match="size mismatch"):
        net.load_state_dict(given, strict=False)
    assert [p.tolist() for p in net.parameters()] == before
    del given["1.weight"]
    result = net.load_state_dict(given, strict=False)
    assert result.missing_keys == ["0.bias", "1.weight"]
    assert result.unexpected_keys == ["zzz", "0.bais"]
    assert net[0].weight.tolist() == [[0.0, 0.0]] * 3
    with pytest.raises(CheckpointError, match=r"0.bias is of type str"):
        net.load_state_dict({"0.bias": "text"}, strict=False)
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])


def test_load_state_dict_assign_puts_tensors_in_place():
    net = nn.Linear(1, 1)
    w = tt.tensor([[3.0]])
    net.weight.requires_grad_(False)
    net.load_state_dict({"weight": w, "bias": tt.zeros(1)}, assign=True)
    assert net.weight.data_ptr() == w.data_ptr()
    assert isinstance(net.weight, nn.Parameter)
    assert not net.weight.requires_grad
    assert net.bias.requires_grad
    given = nn.Parameter(tt.zeros(1), requires_grad=False)
    net.load_state_dict({"weight": w, "bias": given}, assign=True)
    assert net.bias is given
    assert net.bias.requires_grad  # as it was in the module


def test_a_loader_that_walks_by_itself():
    net = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    saved = {name: tt.full_like(value, 2) for name, value in net.state_dict().items() if name != "1.bias"} | {"0.more": tt.ones(1)}
    missing, unexpected, errors = [], [], []

    def load(module, prefix=""):
        module._load_from_state_dict(saved, prefix, {}, True, missing, unexpected, errors)
        for name, child in module._modules.items():
            load(child, f"{prefix}{name}.")

    load(net)
    assert (missing, unexpected, errors) == (["1.bias"], ["0.more"], [])
    assert [net[0].weight.item(), net[1].running_var.item(), net[1].bias.item()] == [2.0, 2.0, 0.0]


def test_extra_state_travels():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = Counter(), Counter()
    a.count = 5
    saved = a.state_dict()
    assert saved == {"_extra_state": {"count": 5}}
    b.load_state_dict(saved)
    assert b.count == 5
    with pytest.raises(CheckpointError, match=r"Missing.*_extra_state"):
        b.load_state_dict({})


def test_modes_and_gradients():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    assert net.train()[1].training
    with pytest.raises(ValueError, match="boolean"):
        net.train("yes")
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    net.requires_grad_()
    net[0](tt.ones(1, 2)).sum().backward()
    held = net[0].bias.grad
    net.zero_grad(set_to_none=False)
    assert net[0].bias.grad is held
    assert held.tolist() == [0.0, 0.0]
    net.zero_grad()
    assert net[0].bias.grad is None
    seen = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Dropout", "Sequential"]


def test_to_keeps_the_parameters_objects():
    net = nn.Linear(2, 2)
    net.register_buffer("steps", tt.tensor([1, 2]))
    before = net.weight
    net(tt.ones(1, 2)).sum().backward()
    assert net.double() is net
    assert net.weight is before
    assert net.weight.dtype == net.weight.grad.dtype == tt.float64
    assert net.steps.dtype == tt.int64
    assert net.half().weight.dtype == tt.float16
    assert net.bfloat16().weight.dtype == tt.bfloat16
    assert net.float().weight.dtype == tt.float32
    assert copy.deepcopy(net).to(tt.float8_e4m3fn).weight.dtype == tt.float8_e4m3fn
    assert net.to("cpu", tt.float64).weight.dtype == tt.float64
    assert net.to(tt.zeros(1)).weight.dtype == tt.float32
    assert net.cpu().weight.device.type == "cpu"
    assert net.type(tt.float64).steps.dtype == tt.float64
    with pytest.raises(DTypeError, match="not a floating or complex type"):
        net.to(tt.int64)
    net.float()
    net(tt.ones(1, 2)).sum().backward()  # the graph works on after the move
    assert net.weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_complex_members_are_cast_by_to_alone():
    net = nn.Linear(2, 2, dtype=tt.complex64)
    assert net.double().weight.dtype is tt.complex64
    assert net.to(tt.complex128).weight.dtype is tt.complex128
    for name, said in (("mps", "'mps' is not a device"), ("float64", "'float64' is not a device")):
        with pytest.raises(DeviceError, match=said):
            net.to(name)


def test_copies_are_independent():
    net = nn.Sequential(nn.Linear(2, 2), Tied())
    net[0](tt.ones(1, 2)).sum().backward()
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert list(again.state_dict()) == list(net.state_dict())
        assert again[1].a.weight is again[1].b.weight
        assert again[0].weight is not net[0].weight
        assert again[0].weight.grad is None
        assert again[0].weight.tolist() == net[0].weight.tolist()


def test_repr_is_pytorchs():
    net = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(True), nn.Sequential(nn.Flatten(), nn.Linear(4, 3, bias=False)))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))\n"
        "  (1): ReLU(inplace=True)\n"
        "  (2): Sequential(\n"
        "    (0): Flatten(start_dim=1, end_dim=-1)\n"
        "    (1): Linear(in_features=4, out_features=3, bias=False)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"

    class Told(nn.Module):
        def extra_repr(self):
            return "a=1\nb=2"

    told = Told()
    assert repr(told) == "Told(\n  a=1\n  b=2\n)"
    told.c = nn.Identity()
    assert repr(told) == "Told(\n  a=1\n  b=2\n  (c): Identity()\n)"


def test_set_submodule():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    net.set_submodule("1.0", nn.Tanh())
    assert isinstance(net[1][0], nn.Tanh)
    with pytest.raises(AttributeError, match="has no attribute `7`"):
        net.set_submodule("7", nn.Tanh(), strict=True)


def test_a_copied_parameter_keeps_what_was_put_on_it() -> None:
    p = tt.nn.Parameter(tt.ones(2))
    p.group = "slow"
    q = copy.copy(p)
    assert type(q) is tt.nn.Parameter
    assert q.group == "slow"
    assert q.requires_grad
    q.group = "fast"
    assert p.group == "slow", "the dictionaries are two"
    with tt.no_grad():
        q.add_(1)
    assert p.tolist() == [2.0, 2.0], "the memory is one"


@pytest.mark.parametrize("layer", [nn.Linear, nn.BatchNorm1d, nn.InstanceNorm1d])
def test_a_loader_of_the_users_own_calls_each_module_by_the_names_of_the_arguments(layer):
    module = layer(2, 2) if layer is nn.Linear else layer(2, affine=True, track_running_stats=True)
    missing, unexpected, errors = [], [], []
    given = {"a.weight": tt.full(module.weight.shape, 5.0), "a.bias": tt.zeros(3), "a.other": tt.zeros(1)}
    module._load_from_state_dict(
        state_dict=given,
        prefix="a.",
        local_metadata={"version": 2},
        strict=True,
        missing_keys=missing,
        unexpected_keys=unexpected,
        error_msgs=errors,
    )
    assert module.weight.tolist() == given["a.weight"].tolist()
    assert unexpected == ["a.other"]
    assert len(errors) == 1
    assert "size mismatch for a.bias" in errors[0]
    assert ("a.running_mean" in missing) == (layer is not nn.Linear)


class Wrapper(nn.Module):
    """What is not its own is the wrapped module's, as public code writes it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


def test_a_wrapper_asks_its_module_for_what_it_has_not():
    model = Wrapper(nn.Linear(3, 2))
    assert model.in_features == 3
    assert list(model.state_dict()) == ["inner.weight", "inner.bias"]
    setattr(model, "block.0", nn.ReLU())
    assert [name for name, _ in model.named_children()] == ["inner", "block.0"]
