"""Calls that have no plan: what draws by a generator of its own, reads values, warns, raises, or comes with ever new arguments."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import tritensor as tt
from tests.dispatch.at_once import learns_at_once, plans_of, taught  # noqa: F401
from tritensor.dispatch.plans import door_code, doors
from tritensor.dispatch.plans.door_code import REST, copy_function, open_door
from tritensor.ground import shortcuts
from tritensor.nn import functional as F

pytestmark = pytest.mark.quick


def test_what_draws_draws_anew() -> None:
    drawn = {tuple(tt.randn(3).tolist()) for _ in range(8)}
    assert len(drawn) == 8
    kept = {tuple(F.dropout(tt.ones(32), 0.5).tolist()) for _ in range(8)}
    assert len(kept) > 1
    assert len({tuple(tt.randperm(8).tolist()) for _ in range(8)}) > 1
    assert len({tuple(tt.rand_like(tt.ones(3)).tolist()) for _ in range(8)}) == 8
    assert len({tuple(tt.bernoulli(tt.full((32,), 0.5)).tolist()) for _ in range(4)}) > 1


def test_what_reads_values_reads_them_anew() -> None:
    for values in ([0, 2], [0, 3], [5, 1]):
        t = tt.tensor(values)
        assert F.one_hot(t).shape[-1] == max(values) + 1
        assert tt.bincount(t).shape[0] == max(values) + 1
        assert tt.repeat_interleave(tt.ones(2), t).shape[0] == sum(values)
        assert t.nonzero().shape[0] == sum(v != 0 for v in values)
        assert tt.arange(6)[t].tolist() == values
        assert tt.ones(3, 6).index_select(1, t).shape == (3, 2)
        assert tt.tensor(values).tolist() == values
        assert tt.nansum(tt.tensor([float(values[0]), math.nan])).item() == values[0]
        assert tt.histc(t.float(), 2).sum().item() == 2.0
        assert [p.shape[0] for p in tt.tensor_split(tt.ones(6), tt.tensor([values[0] % 3, 4]))] == [values[0] % 3, 4 - values[0] % 3, 2]
    for k in (1, 2):
        assert tt.clamp(tt.tensor([5.0]), max=tt.tensor(float(k))).item() == k
        assert tt.add(tt.ones(1), tt.ones(1), alpha=k).item() == 1 + k


def test_what_warns_warns_each_time() -> None:
    x = tt.ones(2, 2)
    for _ in range(3):
        with pytest.warns(DeprecationWarning, match="softmax: dim was not given"):
            F.softmax(x)
    big = tt.tensor([3.0e38])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert (big * 10).item() == math.inf
            assert math.isnan((tt.zeros(1) / 0).item())


def test_errors_are_those_of_the_long_way() -> None:
    x = tt.arange(4.0)
    taught(lambda: x.gather(0, tt.tensor([1])))
    with pytest.raises(IndexError) as quick:
        x.gather(0, tt.tensor([7]))
    with shortcuts.suspended(), pytest.raises(IndexError) as long:
        x.gather(0, tt.tensor([7]))
    assert str(quick.value) == str(long.value)
    taught(lambda: tt.linalg.inv(tt.eye(2)))
    with pytest.raises(tt.linalg.LinAlgError):
        tt.linalg.inv(tt.zeros(2, 2))


def test_what_cannot_be_planned_shuts_its_door() -> None:
    def f(x: Any) -> Any:
        return tt.bernoulli(x)

    door = doors.Door(f, f, "f")
    call = open_door(door)
    for _ in range(doors.VAIN + 1):
        assert call(tt.ones(2)).shape == (2,)
    assert door.shut
    for _ in range(door_code.REST):
        call(tt.ones(1))
    assert not door.shut  # it looks again
    with pytest.raises(TypeError):
        call()


def test_what_is_refused_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, n: int) -> Any:
        return x + x.sum().item() if n else x + x

    door = doors.Door(f, f, "f")
    call = open_door(door)
    for n in (0, 1):
        assert taught(lambda n=n: call(tt.ones(2), n)).tolist() == [2.0 + n] * 2
    monkeypatch.setattr(doors.Door, "_key_of", lambda *_: pytest.fail("it is looked at again"))
    assert call(tt.ones(2), 1).tolist() == [3.0, 3.0]
    assert call(tt.ones(2), 0).tolist() == [2.0, 2.0]


def test_ever_new_arguments_keep_no_more_than_they_may() -> None:
    x = tt.arange(4.0)
    for n in range(1, doors.KEPT + 80):
        assert x.clamp(n).shape == (4,)
    assert 0 < plans_of(tt.Tensor.clamp) <= doors.KEPT


def test_numbers_that_are_refused_by_value_are_refused_at_every_call() -> None:
    x = tt.arange(4.0)
    for _ in range(3):
        assert tt.quantile(x, tt.tensor(0.5)).item() == 1.5
        with pytest.raises(ValueError, match="outside"):
            tt.quantile(x, tt.tensor(1.5))
        assert tt.searchsorted(x, x, sorter=tt.arange(4)).tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="outside"):
            tt.searchsorted(x, x, sorter=tt.arange(4) + 1)


def _own_door() -> tuple[Any, doors.Door]:
    def f(x: tt.Tensor, n: Any) -> tt.Tensor:
        return x + n

    door = doors.Door(f, f, "f")
    return open_door(door), door


def test_a_call_that_is_refused_leaves_the_door_as_it_was() -> None:
    x = tt.arange(4.0)
    call, door = _own_door()
    taught(lambda: call(x, 1))
    form, code = door.form, call.__code__.co_code
    for _ in range(2):
        with pytest.raises(TypeError):
            call(x, ["a"])
        assert (door.form, call.__code__.co_code) == (form, code)
    for _ in range(doors.NARROWED):  # not for ever: it would write code anew at each
        with pytest.raises(TypeError):
            call(x, ["a"])
    assert door.form != form
    assert taught(lambda: call(x, 1)).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_door_that_is_shut_under_one_name_is_looked_at_again_under_another() -> None:
    x = tt.arange(4.0)
    call, door = _own_door()
    other = copy_function(call)
    other(x, 1)
    for _ in range(doors.VAIN + 1):
        door.plans.clear()  # type: ignore[union-attr]
        door._note_vain(call)
    assert door.shut
    for _ in range(REST + 2):
        other(x, 1)
    assert not door.shut
    assert len(door.plans or ()) == 1
