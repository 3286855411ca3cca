"""Settings of groups: the constructor's arguments are held to what makes sense, a group's own to what can be computed, as in PyTorch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn, optim

# an optimizer, what one of its groups says, and PyTorch's parameter after three steps of `steps_of`
GROUPS: list[tuple[str, dict[str, Any], tuple[float, float]]] = [
    ("SGD", {"lr": -0.1}, (0.56, -1.04)),
    ("SGD", {"momentum": -0.5}, (0.499175, -0.99945)),
    ("SGD", {"nesterov": True}, (0.4994, -0.9996)),
    ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.5}, (0.4987763, -0.9991842)),
    ("SGD", {"nesterov": True, "momentum": -0.5}, (0.4998125, -0.999875)),
    ("SGD", {"weight_decay": -0.1}, (0.499550014998, -0.999900029999)),
    ("Adam", {"lr": -0.1}, (0.597713752234, -1.09771375069)),
    ("Adam", {"betas": (1.5, 0.9)}, (0.498911599065, -0.998911599082)),
    ("Adam", {"betas": (0.9, -0.5)}, (0.498980266641, -0.998980266657)),
    ("Adam", {"eps": -0.1}, (0.498558037548, -0.998088807071)),
    ("AdamW", {"weight_decay": -0.1}, (0.499172714079, -0.999322729094)),
    ("Adadelta", {"lr": -0.1}, (0.500399066991, -1.00039904265)),
    ("Adadelta", {"rho": -0.1}, (0.49873745174, -0.998737457666)),
    ("Adagrad", {"lr_decay": -0.1}, (0.489915783331, -0.989915783332)),
    ("Adagrad", {"initial_accumulator_value": -1.0}, (0.490926434655, -0.990926434657)),
    ("Adagrad", {"eps": -0.05}, (0.489273000797, -0.98814490716)),
    ("Adamax", {"betas": (1.5, 0.9)}, (0.497884210593, -0.997884210627)),
    ("Adamax", {"betas": (0.9, 1.0)}, (0.498084482486, -0.998084482518)),
    ("Adamax", {"eps": -0.05}, (0.49770802783, -0.997455571165)),
    ("ASGD", {"lr": -0.1}, (0.560015901928, -1.04003060164)),
    ("ASGD", {"lambd": -0.1, "t0": 1}, (0.495493612958, -0.998999247824)),
    ("NAdam", {"betas": (1.0, 0.9)}, (0.498119514165, -0.998119514193)),
    ("NAdam", {"momentum_decay": -0.1}, (0.49792819459, -0.99792819462)),
    ("RAdam", {"betas": (1.5, 0.9)}, (0.499617894737, -0.999745263158)),
    ("RAdam", {"eps": -0.1}, (0.499651174985, -0.99976744999)),
    ("RMSprop", {"alpha": -0.1}, (0.490373289918, -0.990373290045)),
    ("RMSprop", {"momentum": -0.5}, (0.409181873954, -0.909181887527)),
    ("RMSprop", {"eps": -1.0}, (0.506797054095, -1.00433794593)),
    ("Rprop", {"etas": (1.5, 0.5)}, (0.475, -0.975)),
    ("Rprop", {"lr": -0.1}, (0.499998, -0.999998)),
    ("Adafactor", {"lr": -0.1}, (0.570806271266, -1.07080627127)),
    ("Adafactor", {"beta2_decay": 0.5}, (0.492024359965, -0.992024359965)),
    ("Adafactor", {"eps": (None, -0.001)}, (0.492020056887, -0.992020056887)),
    ("Adafactor", {"d": 0.5}, (0.496028496805, -0.996028496805)),
]


def steps_of(library: ModuleType, name: str, group: dict[str, Any], dtype: str = "float64") -> list[float]:
    """Where three steps by growing gradients of turning signs lead the parameters of a group beside one that says nothing."""
    p, q = (nn_parameter(library, values, dtype) for values in ([0.5, -1.0], [1.0, 1.0]))
    optimizer = getattr(library.optim, name)([{"params": [p], **group}, {"params": [q]}])
    for k in (1.0, -2.0, 3.0):
        for x in (p, q):
            x.grad = library.tensor([[0.3 * k, -0.2 * k]], dtype=getattr(library, dtype))
        optimizer.step()
    found: list[float] = p.detach().flatten().tolist()
    return found


def nn_parameter(library: ModuleType, values: list[float], dtype: str) -> Any:
    return library.nn.Parameter(library.tensor([values], dtype=getattr(library, dtype)))


@pytest.mark.parametrize(("name", "group", "expected"), GROUPS)
def test_a_group_may_say_what_the_constructor_refuses(name: str, group: dict[str, Any], expected: tuple[float, float]) -> None:
    assert steps_of(tt, name, group) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("name", "group"), [(name, group) for name, group, _ in GROUPS if name != "ASGD"])
def test_the_constructor_refuses_it_whatever_the_groups_say(name: str, group: dict[str, Any]) -> None:
    """ASGD's constructor looks at two of its numbers alone."""
    p = nn_parameter(tt, [0.5, -1.0], "float64")
    with pytest.raises(ValueError, match=name):
        getattr(optim, name)([{"params": [p], **getattr(optim, name)([p]).defaults}], **group)


def test_a_group_that_names_nesterov_and_no_momentum_is_plain_descent() -> None:
    p, q = nn.Parameter(tt.ones(2)), nn.Parameter(tt.ones(2))
    optimizer = optim.SGD([{"params": [p], "nesterov": True}, {"params": [q]}], lr=0.25)
    for x in (p, q):
        x.grad = tt.ones(2)
    optimizer.step()
    assert p.tolist() == q.tolist() == [0.75, 0.75]


@pytest.mark.parametrize(
    ("name", "group", "kind", "message"),
    [
        ("SGD", {"lr": None}, TypeError, "SGD: lr is None, a NoneType; give a number"),
        ("SGD", {"momentum": "a"}, TypeError, "SGD: momentum is 'a', a str; give a number"),
        ("Adam", {"betas": (0.9,)}, ValueError, r"Adam: Invalid betas: \(0.9,\); give 2 numbers"),
        ("Adam", {"betas": 0.9}, ValueError, "Adam: Invalid betas: 0.9; give 2 numbers"),
        ("Adam", {"betas": (1.0, 0.9)}, ValueError, "Adam: Invalid beta parameter at index 0 of a group: 1.0; it must not be 1"),
        ("AdamW", {"betas": (0.9, 1.5)}, ValueError, "AdamW: Invalid beta parameter at index 1 of a group: 1.5; it must be at most 1"),
        ("Adamax", {"betas": (1, 0.9)}, ValueError, "Adamax: Invalid beta parameter at index 0 of a group: 1; it must not be 1"),
        ("SparseAdam", {"betas": (0.9, 1.5)}, ValueError, "SparseAdam: Invalid beta parameter at index 1 of a group"),
        ("Rprop", {"etas": (0.5,)}, ValueError, r"Rprop: Invalid etas: \(0.5,\); give 2 numbers"),
        ("Muon", {"ns_coefficients": (1.0, 2.0)}, ValueError, r"Muon: Invalid ns_coefficients: \(1.0, 2.0\); give 3 numbers"),
        ("Adafactor", {"lr": tt.ones(2)}, ValueError, r"Adafactor: Tensor lr must be 1-element, not of shape \(2,\)"),
        ("SparseAdam", {"eps": None}, TypeError, "SparseAdam: eps is None"),
        ("LBFGS", {"lr": "auto"}, TypeError, "LBFGS: lr is 'auto'"),
    ],
)
def test_what_no_step_can_be_computed_with_is_refused_at_once(
    name: str, group: dict[str, Any], kind: type[Exception], message: str
) -> None:
    p = nn_parameter(tt, [0.5, -1.0], "float32")
    with pytest.raises(kind, match=message):
        getattr(optim, name)([{"params": [p], **group}])


def test_a_loaded_group_replaces_what_was_there() -> None:
    """A schedule's initial_lr is no setting of a group that was saved before the schedule came; names of parameters and defaults stay."""
    w = nn.Parameter(tt.ones(2))
    opt = optim.SGD([("w", w)], lr=0.1, momentum=0.5)
    before = opt.state_dict()
    del before["param_groups"][0]["param_names"], before["param_groups"][0]["momentum"]
    optim.lr_scheduler.ExponentialLR(opt, 0.5)
    opt.load_state_dict(before)
    group = opt.param_groups[0]
    assert "initial_lr" not in group
    assert (group["params"], group["param_names"], group["momentum"]) == ([w], ["w"], 0.5)


def test_a_parameter_that_comes_again_keeps_its_number() -> None:
    opt = optim.SGD([nn.Parameter(tt.ones(2)), nn.Parameter(tt.ones(3))], lr=0.1)
    opt.param_groups.extend(opt.param_groups)
    assert [g["params"] for g in opt.state_dict()["param_groups"]] == [[0, 1], [0, 1]]


def test_a_users_optimizer_has_its_numbers_back_as_they_were() -> None:
    """PyTorch makes a tensor of an integer step in its own optimizers alone: another's computes with what it has put there."""

    class Counting(optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            for p in self.param_groups[0]["params"]:
                self.state[p].update(step=self.state[p].get("step", 0) + 1, seen=tt.tensor(3), mean=tt.ones(2, dtype=tt.float64))

    w = nn.Parameter(tt.ones(2))
    opt, other = Counting([w], {}), Counting([w], {})
    opt.step()
    other.load_state_dict(opt.state_dict())
    assert (type(other.state[w]["step"]), other.state[w]["step"]) == (int, 1)
    assert (other.state[w]["seen"].dtype, other.state[w]["mean"].dtype) == (tt.int64, tt.float32)
