"""swap_in_optimizer_params_and_state: other tensors are stepped inside, and nothing of it stays."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import tritensor as tt
from tritensor.optim import Adam, swap_in_optimizer_params_and_state


def stepped() -> tuple[tt.nn.Linear, Adam]:
    model = tt.nn.Linear(2, 2)
    optimizer = Adam(model.parameters(), lr=0.1)
    model(tt.ones(1, 2)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_a_step_inside_is_of_the_given_tensors_and_state() -> None:
    model, optimizer = stepped()
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 0.5
    given = {n: tt.zeros_like(p).requires_grad_() for n, p in model.named_parameters()}
    for p in given.values():
        p.grad = tt.ones_like(p)
    before = model.weight.detach().clone()
    with swap_in_optimizer_params_and_state(optimizer, given, state):
        optimizer.step()
    assert tt.allclose(given["weight"], tt.full((2, 2), -0.5))
    assert state["state"][0]["step"].item() == 2
    assert tt.equal(before, model.weight)
    assert optimizer.param_groups[0]["params"][0] is model.weight
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert optimizer.state[model.weight]["step"].item() == 1
    optimizer.step()
    assert optimizer.state[model.weight]["step"].item() == 2
    assert not tt.equal(before, model.weight)


def groups(state: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {"state": state["state"], "param_groups": [{**state["param_groups"][0], **other}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ps, sd: ({}, sd), "0 parameters are too few"),
        (lambda ps, sd: (ps, {}), "is no state_dict"),
        (lambda ps, sd: (ps, {**sd, "state": {7: {}}}), r"extra keys \[7\]"),
        (lambda ps, sd: (ps, {**sd, "param_groups": []}), "different number of parameter groups, 0"),
        (lambda ps, sd: (ps, groups(sd, params=[0])), "different number of params, 1"),
        (lambda ps, sd: (ps, groups(sd, params="ab")), "packed parameter ids"),
        (lambda ps, sd: (ps, groups(sd, other=1)), r"Keys only in swap-in: \['other'\]"),
        (lambda ps, sd: (ps, {**sd, "state": {tt.ones(1): {}}}), "not by the parameters themselves"),
        (lambda ps, sd: (ps, {**sd, "state": {0: 1}}), "to be dictionaries"),
    ],
)
def test_what_is_not_the_optimizers_is_refused(change, said) -> None:
    model, optimizer = stepped()
    given = change(dict(model.named_parameters()), optimizer.state_dict())
    with pytest.raises(RuntimeError, match=said), swap_in_optimizer_params_and_state(optimizer, *given):
        pass


def test_an_optimizer_without_state_is_refused() -> None:
    optimizer = Adam(tt.nn.Linear(2, 2).parameters())
    with pytest.raises(RuntimeError, match="take a step first"), swap_in_optimizer_params_and_state(optimizer, {}, optimizer.state_dict()):
        pass
