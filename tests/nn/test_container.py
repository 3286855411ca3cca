"""Containers: order, names, slices, plain functions, collapsed printing."""

from collections import OrderedDict

import pytest

import tritensor as tt
from tritensor import nn


def double(x):
    return x * 2


def test_sequential_runs_plain_functions():
    net = nn.Sequential(nn.Linear(2, 2), tt.tanh, lambda x: x * 2, double)
    x = tt.ones(1, 2)
    expected = tt.tanh(net[0](x)) * 4
    assert net(x).tolist() == expected.tolist()
    assert repr(net).splitlines()[2:5] == ["  (1): tanh", "  (2): <lambda>", "  (3): double"]
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
    net.load_state_dict(net.state_dict())
    net(x).sum().backward()
    assert net[0].weight.grad is not None
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        nn.Sequential(3)


def test_sequential_of_names():
    net = nn.Sequential(OrderedDict(fc=nn.Linear(2, 3), act=nn.ReLU()))
    assert list(net.state_dict()) == ["fc.weight", "fc.bias"]
    assert net.act is net[1]
    assert list(net[:1]._modules) == ["fc"]


def test_sequential_as_a_list():
    a, b, c, d = (nn.Linear(1, 1) for _ in range(4))
    net = nn.Sequential(a, b)
    assert net.append(c) is net
    assert net.insert(1, d) is net
    assert [net[i] for i in range(4)] == [a, d, b, c]
    assert net[-1] is c
    assert list(net._modules) == ["0", "1", "2", "3"]
    assert isinstance(net[1:3], nn.Sequential)
    assert list(net[1:3]) == [d, b]
    del net[1]
    assert list(net) == [a, b, c]
    net[0] = d
    assert net[0] is d
    assert net.pop(-1) is c
    assert list(net.extend([c, a])) == [d, b, c, a]
    assert list(net + nn.Sequential(a)) == [d, b, c, a, a]
    del net[::2]
    assert list(net._modules.items()) == [("0", b), ("1", a)]
    assert len(net) == 2
    with pytest.raises(IndexError, match="index 2 is out of range for Sequential of 2"):
        _ = net[2]
    with pytest.raises(TypeError, match="iterable"):
        net.extend(5)
    with pytest.raises(IndexError, match="Index out of range: 5; give -2 to 2"):
        net.insert(5, a)


def test_module_list():
    rows = nn.ModuleList([nn.Linear(1, 1) for _ in range(2)])
    rows.append(nn.ReLU())
    rows += [nn.Linear(1, 1)]
    assert len(list(rows.parameters())) == 6
    assert repr(rows) == (
        "ModuleList(\n"
        "  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): ReLU()\n"
        "  (3): Linear(in_features=1, out_features=1, bias=True)\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    nested = nn.ModuleList([nn.ModuleList([nn.ReLU(), nn.ReLU()])])
    assert repr(nested) == "ModuleList(\n  (0): ModuleList(\n    (0-1): 2 x ReLU()\n  )\n)"
    rows.insert(0, nn.Tanh())
    assert isinstance(rows[0], nn.Tanh)
    assert len(rows[1:]) == 4
    with pytest.raises(TypeError, match="not a Module"):
        rows.append(double)
    with pytest.raises(NotImplementedError, match="ModuleList"):
        rows(1)


def test_module_dict():
    parts = nn.ModuleDict({"a": nn.Linear(1, 1)})
    parts["b"] = nn.ReLU()
    parts.update([("c", nn.Tanh())])
    assert list(parts) == ["a", "b", "c"]
    assert "b" in parts
    assert isinstance(parts.pop("b"), nn.ReLU)
    assert len(parts) == 2
    assert list(parts.state_dict()) == ["a.weight", "a.bias"]
    assert repr(parts).splitlines()[1] == "  (a): Linear(in_features=1, out_features=1, bias=True)"
    assert list(parts.keys()) == [k for k, _ in parts.items()]
    parts.clear()
    assert not len(parts)


def test_parameter_list_and_dict():
    m = nn.Module()
    m.row = nn.ParameterList([nn.Parameter(tt.zeros(2, 3)), tt.ones(2)])
    m.by_name = nn.ParameterDict({"a": tt.zeros(4)})
    assert list(m.state_dict()) == ["row.0", "row.1", "by_name.a"]
    assert isinstance(m.row[-1], nn.Parameter)
    assert repr(m.row).splitlines()[1:3] == [
        "    (0): Parameter containing: [tritensor.float32 of size 2x3]",
        "    (1): Parameter containing: [tritensor.float32 of size 2]",
    ]
    m.row.append(tt.ones(1))
    m.row[0] = tt.ones(5)
    assert [p.numel() for p in m.row] == [5, 2, 1]
    assert len(m.row[1:]) == 2
    m.by_name["b"] = tt.ones(1)
    assert m.by_name.pop("a").numel() == 4
    assert list(m.by_name) == ["b"]
    m.row.append(3)  # other values are kept and are no parameters
    assert m.row[-1] == 3
    assert len(list(m.parameters())) == 4


def test_pop_takes_a_place_or_a_slice_by_its_name() -> None:
    for made in (nn.Sequential(*[nn.Linear(1, n) for n in (1, 2, 3)]), nn.ModuleList([nn.Linear(1, n) for n in (1, 2, 3)])):
        assert made.pop(key=0).out_features == 1
        assert [m.out_features for m in made.pop(slice(0, 2))] == [2, 3]
        assert len(made) == 0
    assert len(nn.Sequential().extend(sequential=[nn.Linear(1, 1)])) == 1


def test_keywords_of_parameters():
    assert nn.factory_kwargs(None) == nn.factory_kwargs({}) == {}
    assert nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": tt.float64}}) == {"device": "cpu", "dtype": tt.float64}
    with pytest.raises(TypeError, match="unexpected kwargs bias; give device, dtype"):
        nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match="dtype specified twice"):
        nn.factory_kwargs({"dtype": tt.float64, "factory_kwargs": {"dtype": tt.float32}})
