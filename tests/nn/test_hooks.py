"""Hooks of a Module: forward, backward, state."""

import copy
from collections import OrderedDict

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import CheckpointError, ShapeError


class Double(nn.Module):
    def forward(self, x, *, scale=2.0):
        return x * scale


class Product(nn.Module):
    def forward(self, a, b):
        return a * b


def test_forward_hooks_see_and_replace():
    m = Double()
    seen = []
    pre = m.register_forward_pre_hook(lambda mod, args: seen.append(args[0].item()))
    change = m.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    post = m.register_forward_hook(lambda mod, args, out: out + args[0])
    assert m(tt.tensor(1.0)).item() == 6.0
    assert seen == [1.0]
    for handle in (pre, change, post):
        handle.remove()
    assert m(tt.tensor(1.0)).item() == 2.0


def test_forward_hooks_with_kwargs_and_order():
    m = Double()
    order = []
    m.register_forward_pre_hook(lambda mod, args, kw: (args, {"scale": kw["scale"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, kw, out: order.append(kw["scale"]), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: order.append("first"), prepend=True)
    assert m(tt.tensor(1.0), scale=3.0).item() == 4.0
    assert order == ["first", 4.0]
    m.register_forward_pre_hook(lambda mod, args, kw: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"None or \(args, kwargs\)"):
        m(tt.tensor(1.0), scale=3.0)


def test_handle_as_context_and_always_call():
    m = nn.Linear(2, 2)
    calls = []
    with m.register_forward_hook(lambda mod, args, out: calls.append(out), always_call=True):
        with pytest.raises(ShapeError):
            m(tt.ones(1, 3))
        assert calls == [None]
        m(tt.ones(1, 2))
        assert len(calls) == 2
    m(tt.ones(1, 2))
    assert len(calls) == 2
    m.register_forward_hook(lambda mod, args, out: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="always_call=True raised ZeroDivisionError"), pytest.raises(ShapeError):
        m(tt.ones(1, 3))  # the first error is the one that is seen
    with pytest.raises(ZeroDivisionError):
        m(tt.ones(1, 2))


def test_hooks_travel_with_a_copy():
    m = Double()
    m.register_forward_hook(lambda mod, args, out: out + 1)
    again = copy.deepcopy(m)
    assert again(tt.tensor(1.0)).item() == 3.0
    again.register_forward_hook(lambda mod, args, out: out * 10)
    assert m(tt.tensor(1.0)).item() == 3.0


def test_full_backward_hook_sees_all_inputs_at_once():
    m = Product()
    a, b = tt.tensor(3.0, requires_grad=True), tt.tensor(5.0, requires_grad=True)
    seen = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append(([g.item() for g in gi], [g.item() for g in go])))
    (m(a, b) * 2 + a * 100).backward()  # the use of a outside the module is not the module's gradient
    assert seen == [([10.0, 6.0], [2.0])]
    assert a.grad.item() == 110.0
    assert b.grad.item() == 6.0


def test_full_backward_hooks_replace_gradients():
    m = Product()
    a, b = tt.tensor(3.0, requires_grad=True), tt.tensor(5.0)
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10,))
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] + go[0], None))
    m(a, b).backward()
    assert a.grad.item() == 60.0  # 5 * 10 + 10


def test_full_backward_hook_without_gradient_of_the_input():
    m = nn.Linear(2, 1)
    seen = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go[0].tolist())))
    m(tt.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    assert m.weight.grad.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("given", [(), (None,), (None, None)])
def test_a_full_backward_hook_that_replaces_nothing_need_not_return_none(given):
    m = nn.Linear(2, 1)
    m.register_full_backward_hook(lambda mod, gi, go: given)
    m(tt.ones(1, 2)).sum().backward()
    assert m.weight.grad.tolist() == [[1.0, 1.0]]
    m.register_full_backward_hook(lambda mod, gi, go: (tt.ones(1, 2),))
    with pytest.raises(RuntimeError, match="no input of the module requires grad"):
        m(tt.ones(1, 2)).sum().backward()


def test_backward_hooks_leave_second_derivatives():
    m = Product()
    m.register_full_backward_hook(lambda mod, gi, go: None)
    a = tt.tensor(3.0, requires_grad=True)
    y = m(a, a * a)  # a^3
    (g,) = tt.autograd.grad(y, a, create_graph=True)
    (h,) = tt.autograd.grad(g, a)
    assert (g.item(), h.item()) == (27.0, 18.0)


def test_backward_hook_of_the_wrong_length_is_refused():
    m = Product()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0],))
    a = tt.tensor(3.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="1 gradients for 2"):
        m(a, a).backward()


def test_state_hooks():
    m = nn.Linear(1, 1)
    calls = []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: calls.append(prefix))
    m.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update({prefix + "more": tt.zeros(1)}))
    outer = nn.Sequential(m)
    assert list(outer.state_dict()) == ["0.weight", "0.bias", "0.more"]
    assert calls == ["0."]
    with m._register_state_dict_hook(lambda mod, state, prefix, meta: {"only": 1}):
        assert m.state_dict() == {"only": 1}
    m.register_state_dict_post_hook(lambda mod, state, prefix, meta: state)
    with pytest.raises(RuntimeError, match="returned a OrderedDict; state_dict post-hook must return None"):
        m.state_dict()


def test_load_pre_hook_renames():
    m = nn.Linear(1, 1)

    def rename(mod, state, prefix, meta, strict, missing, unexpected, errors):
        if prefix + "kernel" in state:
            state[prefix + "weight"] = state.pop(prefix + "kernel")

    m.register_load_state_dict_pre_hook(rename)
    given = {"0.kernel": tt.tensor([[7.0]]), "0.bias": tt.zeros(1)}
    nn.Sequential(m).load_state_dict(given)
    assert m.weight.item() == 7.0
    assert "0.kernel" in given  # the caller's dictionary is left alone


def test_load_post_hook_forgives_and_failure_undoes():
    m = nn.Linear(1, 1)
    nn.init.constant_(m.weight, 5.0)
    with m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.remove("bias")):
        m.load_state_dict({"weight": tt.tensor([[2.0]])})
    assert m.weight.item() == 2.0
    m.register_load_state_dict_post_hook(lambda mod, keys: None)
    with pytest.raises(CheckpointError, match="bias"):
        m.load_state_dict({"weight": tt.tensor([[9.0]])})
    assert m.weight.item() == 2.0
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.unexpected_keys.append("mine"))
    with pytest.raises(CheckpointError, match="mine"):
        m.load_state_dict({"weight": tt.tensor([[9.0]]), "bias": tt.zeros(1)})
    assert m.weight.item() == 2.0


def test_a_load_post_hook_returns_nothing():
    m = nn.Linear(1, 1)
    nn.init.constant_(m.weight, 5.0)
    m.register_load_state_dict_post_hook(lambda mod, keys: keys)
    with pytest.raises(AssertionError, match="load_state_dict: a hook of register_load_state_dict_post_hook returned a value; change"):
        m.load_state_dict({"weight": tt.tensor([[9.0]]), "bias": tt.zeros(1)})
    assert m.weight.item() == 5.0


def test_hooks_on_every_module() -> None:
    from tritensor.nn.modules import module as everywhere

    seen: list[tuple[str, str]] = []
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    plain = net(tt.ones(1, 2))
    net[0].register_forward_hook(lambda m, a, y: seen.append(("own", type(m).__name__)))
    handles = [
        everywhere.register_module_forward_pre_hook(lambda m, args: seen.append(("before", type(m).__name__))),
        everywhere.register_module_forward_hook(lambda m, args, y: seen.append(("after", type(m).__name__))),
        everywhere.register_module_full_backward_pre_hook(lambda m, above: seen.append(("pre", type(m).__name__))),
        everywhere.register_module_full_backward_hook(lambda m, below, above: seen.append(("post", type(m).__name__))),
    ]
    y = net(tt.ones(1, 2))
    assert tt.equal(y, plain)
    assert [s for s in seen if s[1] == "Linear"] == [("before", "Linear"), ("after", "Linear"), ("own", "Linear")]
    assert ("before", "Sequential") in seen
    y.sum().backward()
    assert ("post", "Tanh") in seen
    assert ("pre", "Sequential") in seen
    for handle in handles:
        handle.remove()
    assert nn.Module._hooks is None
    n = len(seen)
    nn.Tanh()(tt.ones(1))
    assert len(seen) == n


def test_hooks_on_registration() -> None:
    from tritensor.nn.modules import module as everywhere

    names: list[str] = []
    with (
        everywhere.register_module_parameter_registration_hook(lambda m, name, p: names.append(name)),
        everywhere.register_module_buffer_registration_hook(lambda m, name, b: names.append(name)),
        everywhere.register_module_module_registration_hook(lambda m, name, c: nn.Identity()),
    ):
        net = nn.Sequential(nn.Linear(2, 2))
        net.register_buffer("count", tt.zeros(1))
    assert names == ["weight", "bias", "count"]
    assert isinstance(net[0], nn.Identity)
    assert isinstance(nn.Sequential(nn.Tanh())[0], nn.Tanh)


def test_the_old_backward_hook_sees_the_last_op() -> None:
    seen: list[tuple[int, list[float]]] = []
    layer = nn.Linear(2, 1)
    layer.register_backward_hook(lambda m, below, above: seen.append((len(below), above[0].tolist())))
    layer(tt.ones(1, 2)).sum().backward()
    assert seen == [(3, [[1.0]])]
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        layer.register_full_backward_hook(print)


def test_backward_hooks_see_an_entry_for_each_output():
    class Mixed(nn.Module):
        def forward(self, a):
            return a * 2, {"kept": a}, "text", a * 3

    seen = []
    m = Mixed()
    m.register_full_backward_hook(lambda mod, below, above: seen.append([None if g is None else g.item() for g in above]))
    m.register_full_backward_pre_hook(lambda mod, above: (above[0], None, None, above[3] * 10))
    a = tt.tensor([1.0], requires_grad=True)
    y = m(a)
    (y[0] + y[3]).sum().backward()
    assert seen == [[1.0, None, None, 10.0]]
    assert a.grad.item() == 32.0


def test_the_dictionaries_of_hooks_that_scripts_reach_for() -> None:
    m, seen = nn.Linear(1, 1), []
    assert len(m._forward_hooks) == len(m._forward_pre_hooks) == 0

    def note(mod, args, out):
        seen.append(out.item())

    handle = m.register_forward_hook(note)
    m.register_forward_pre_hook(lambda mod, args: (args[0] * 0,))
    assert list(m._forward_hooks.values()) == [note]
    for key in list(m._forward_pre_hooks):
        del m._forward_pre_hooks[key]
    m(tt.ones(1, 1))
    assert seen == [m(tt.ones(1, 1)).item()] * 2
    again = copy.deepcopy(m)
    m._forward_hooks.clear()
    again._forward_hooks = OrderedDict()
    handle.remove()
    for net in (m, again):
        net(tt.ones(1, 1))
        net._forward_hooks[7] = note
    assert len(seen) == 2
    again(tt.ones(1, 1))
    assert len(seen) == 3
    assert repr(nn.Module()._backward_hooks) == "{}"


@pytest.mark.parametrize(
    ("register", "table"),
    [
        ("register_full_backward_pre_hook", "_backward_pre_hooks"), ("register_full_backward_hook", "_backward_hooks"),
        ("register_state_dict_pre_hook", "_state_dict_pre_hooks"), ("register_state_dict_post_hook", "_state_dict_hooks"),
        ("register_load_state_dict_pre_hook", "_load_state_dict_pre_hooks"),
        ("register_load_state_dict_post_hook", "_load_state_dict_post_hooks"),
    ],
)  # fmt: skip
def test_every_kind_of_hook_has_its_dictionary(register: str, table: str) -> None:
    module = nn.Linear(2, 2)
    assert not getattr(module, table)
    handle = getattr(module, register)(hook := lambda *_: None)
    assert list(getattr(module, table)) == [handle.id]
    if table != "_load_state_dict_pre_hooks":  # wrapped, in PyTorch too
        assert list(getattr(module, table).values()) == [hook]
    getattr(module, table).clear()
    assert not getattr(module, table)


def test_hooks_under_their_private_names():
    """Public code counts, finds and clears hooks by _forward_hooks and its kin."""
    m, seen = nn.Linear(2, 2), []
    assert [len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)] == [0, 0, 0]
    m.register_forward_hook(lambda *_: seen.append("after"))
    before = m.register_forward_pre_hook(seen_hook := lambda *_: seen.append("before"))
    assert list(m._forward_pre_hooks.items()) == [(before.id, seen_hook)]
    m(tt.ones(1, 2))
    del m._forward_pre_hooks[before.id]
    m._forward_hooks.clear()
    m(tt.ones(1, 2))
    assert seen == ["before", "after"]
    m._forward_hooks[7] = lambda *_: seen.append("set")
    m(tt.ones(1, 2))
    assert seen[2:] == ["set"]
