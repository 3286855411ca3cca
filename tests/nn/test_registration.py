"""Registration of parameters, buffers and modules: buffers that require grad, and mistakes that are named."""

import pytest

import tritensor as tt
from tritensor import nn


def values(*numbers):
    return tt.tensor([float(n) for n in numbers])


def test_registration_mistakes_are_named():
    m = nn.Module()
    m.w, m.x, m.layer, m.buf = nn.Parameter(values(1)), 3, nn.Linear(1, 1), nn.Buffer(values(1))
    with pytest.raises(TypeError, match="cannot assign 'Tensor' as parameter 'w'"):
        m.w = values(1)
    with pytest.raises(TypeError, match=r"cannot assign 'int' as child module 'layer' \(nn.Module or None expected\)"):
        m.layer = 3
    with pytest.raises(TypeError, match="cannot assign 'list' as buffer 'buf'"):
        m.buf = [1]
    m.register_parameter("none", None)
    for name in ("w", "none"):
        for value in (nn.ReLU(), nn.Buffer(values(1))):
            with pytest.raises(
                TypeError, match=f"cannot assign '{type(value).__name__}' as parameter '{name}'.*; take the parameter away first"
            ):
                setattr(m, name, value)
    with pytest.raises(TypeError, match="cannot assign 'Buffer' as child module 'layer'"):
        m.layer = nn.Buffer(values(1))
    assert (list(m._parameters), list(m._modules), list(m._buffers)) == (["w", "none"], ["layer"], ["buf"])
    with pytest.raises(KeyError, match="already exists"):
        m.register_parameter("x", nn.Parameter(values(1)))
    with pytest.raises(KeyError, match=r'must not be empty or contain "\."'):
        m.register_buffer("a.b", values(1))
    with pytest.raises(TypeError, match="string"):
        m.add_module(3, nn.Identity())
    with pytest.raises(TypeError, match="not a Module"):
        m.add_module("f", abs)
    with pytest.raises(TypeError, match=r"nn.Parameter or None"):
        m.register_parameter("q", values(1))

    class NoInit(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(values(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        NoInit()
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        m(1)
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'wieght'"):
        _ = m.wieght


def test_a_buffer_requires_grad_where_its_data_does():
    source = values(2).requires_grad_()
    m = nn.Module()
    m.b, m.plain = nn.Buffer(source), nn.Buffer(values(2))
    assert (m.b.requires_grad, m.b.is_leaf, m.plain.requires_grad) == (True, True, False)
    assert not m.state_dict()["b"].requires_grad
    (m.b * 3).sum().backward()
    assert m.b.grad.tolist() == [3.0]
    assert source.grad is None
    assert nn.Buffer(source * 2).is_leaf
