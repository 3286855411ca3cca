"""Learning-rate schedules: the rates they give, chaining, going on, and refusals."""

import math

import pytest

import tritensor as tt
from tritensor import nn, optim
from tritensor.optim import lr_scheduler as schedules


def optimizer(*rates):
    groups = [{"params": [nn.Parameter(tt.zeros(1))], "lr": r} for r in rates or (1.0,)]
    return optim.SGD(groups)


def rates(make, epochs, *start):
    opt = optimizer(*start)
    schedule = make(opt)
    found = []
    for _ in range(epochs):
        found.append(schedule.get_last_lr()[-1])
        assert opt.param_groups[-1]["lr"] == found[-1]
        opt.step()
        schedule.step()
    return found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: schedules.StepLR(o, 2, gamma=0.5), [1, 1, 0.5, 0.5, 0.25, 0.25]),
        (lambda o: schedules.MultiStepLR(o, [1, 4, 4], gamma=0.5), [1, 0.5, 0.5, 0.5, 0.125, 0.125]),
        (lambda o: schedules.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
        (lambda o: schedules.LinearLR(o, 0.25, total_iters=3), [0.25, 0.5, 0.75, 1, 1, 1]),
        (lambda o: schedules.LambdaLR(o, lambda epoch: 1 / (epoch + 1)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]),
        (lambda o: schedules.CosineAnnealingLR(o, 4, eta_min=0.2), [0.2 + 0.4 * (1 + math.cos(math.pi * t / 4)) for t in range(12)]),
    ],
)
def test_rates(make, expected):
    assert rates(make, len(expected)) == pytest.approx(expected)


def test_several_groups():
    opt = optimizer(1.0, 0.1)
    schedule = schedules.LambdaLR(opt, [lambda e: 0.5**e, lambda e: 2.0**e])
    opt.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 0.2]
    assert schedule.base_lrs == [1.0, 0.1]
    with pytest.raises(ValueError, match="expected 2 lr_lambdas"):
        schedules.LambdaLR(opt, [abs])


def test_chained_schedules_multiply():
    opt = optimizer()
    chain = [schedules.ExponentialLR(opt, 0.5), schedules.StepLR(opt, 2, 0.1)]
    found = []
    for _ in range(4):
        found.append(opt.param_groups[0]["lr"])
        opt.step()
        for s in chain:
            s.step()
    assert found == pytest.approx([1, 0.5, 0.025, 0.0125])


def test_going_on():
    opt = optimizer()
    schedule = schedules.CosineAnnealingLR(opt, 10)
    for _ in range(4):
        opt.step()
        schedule.step()
    other = optimizer()
    again = schedules.CosineAnnealingLR(other, 10)
    other.load_state_dict(opt.state_dict())
    again.load_state_dict(schedule.state_dict())
    for o, s in ((opt, schedule), (other, again)):
        o.step()
        s.step()
    assert other.param_groups[0]["lr"] == opt.param_groups[0]["lr"]
    third = optimizer()
    third.load_state_dict(opt.state_dict())
    assert schedules.CosineAnnealingLR(third, 10, last_epoch=4).get_last_lr() == pytest.approx(schedule.get_last_lr())
    with pytest.raises(KeyError, match="initial_lr"):
        schedules.StepLR(optimizer(), 1, last_epoch=3)
    assert "lr_lambdas" not in schedules.LambdaLR(optimizer(), abs).state_dict()


def test_plateau():
    opt = optimizer()
    schedule = schedules.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    found = []
    for metric in [3.0, 2.0, 2.0, tt.tensor(2.0), 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0]:
        schedule.step(metric)
        found.append(opt.param_groups[0]["lr"])
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2]
    assert schedule.best == 1.0
    up = schedules.ReduceLROnPlateau(optimizer(), mode="max", threshold=0.1, threshold_mode="abs")
    assert up.is_better(1.2, 1.0)
    assert not up.is_better(1.05, 1.0)
    up.load_state_dict(schedule.state_dict())
    assert up.best == 1.0


def test_stepping_the_schedule_first_is_noticed():
    opt = optimizer()
    schedule = schedules.StepLR(opt, 1)
    with pytest.warns(UserWarning, match=r"before optimizer.step\(\)"):
        schedule.step()


def test_mistakes_are_named():
    opt = optimizer(1.0, 1.0)
    for make, kind, message in [
        (lambda: schedules.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda: schedules.StepLR(opt, 0), ValueError, "step_size 0"),
        (lambda: schedules.CosineAnnealingLR(opt, 0), ValueError, "T_max 0"),
        (lambda: schedules.LinearLR(opt, 0.0), ValueError, "start_factor 0.0"),
        (lambda: schedules.ReduceLROnPlateau(opt, factor=1.0), ValueError, "factor 1.0"),
        (lambda: schedules.ReduceLROnPlateau(opt, mode="down"), ValueError, "'down'"),
        (lambda: schedules.ReduceLROnPlateau(opt, min_lr=[0.0]), ValueError, "expected 2 min_lrs"),
        (lambda: schedules.LRScheduler(opt), NotImplementedError, r"define get_lr\(\)"),
    ]:
        with pytest.raises(kind, match=message):
            make()
