"""Learning-rate schedules: the rates they give, chaining, going on, and refusals."""

import collections
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
        (lambda o: schedules.MultiplicativeLR(o, lambda epoch: 1 / epoch), [1, 1, 1 / 2, 1 / 6, 1 / 24]),
        (lambda o: schedules.ConstantLR(o, 0.25, total_iters=3), [0.25, 0.25, 0.25, 1, 1]),
        (lambda o: schedules.PolynomialLR(o, 4, power=2.0), [1, 9 / 16, 4 / 16, 1 / 16, 0, 0]),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2), [1, 0.5, *[(1 + math.cos(math.pi * t / 4)) / 2 for t in range(4)], 1]),
        (lambda o: schedules.CyclicLR(o, 0.5, 1.0, 2, cycle_momentum=False), [0.5, 0.75, 1, 0.75, 0.5, 0.75]),
        (lambda o: schedules.CyclicLR(o, 0.5, 1.0, 1, 2, mode="triangular2", cycle_momentum=False), [0.5, 1, 0.75, 0.5, 0.75, 0.625, 0.5]),
        (
            lambda o: schedules.OneCycleLR(
                o, 1.0, 6, pct_start=0.5, anneal_strategy="linear", div_factor=4.0, final_div_factor=5.0, cycle_momentum=False
            ),
            [0.25, 0.625, 1, 0.05 + 0.95 * 2 / 3, 0.05 + 0.95 / 3, 0.05],
        ),
        (
            lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.5, 9), schedules.ExponentialLR(o, 0.5)], [2]),
            [0.5, 0.5, 1, 0.5, 0.25],
        ),
        (
            lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 2), schedules.ExponentialLR(o, 0.5)]),
            [0.5, 0.25, 0.25, 0.125],
        ),
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
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas"):
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
    assert up._is_better(1.2, 1.0)
    assert not up._is_better(1.05, 1.0)
    up.load_state_dict(schedule.state_dict())
    assert up.best == 1.0


def test_a_plateaus_way_to_reduce_can_be_replaced():
    """ignite sets one that reduces some groups alone; it is given the epoch."""
    epochs = []
    schedule = schedules.ReduceLROnPlateau(optimizer(), patience=0)
    schedule._reduce_lr = epochs.append
    for metric in (1.0, 2.0, 0.5, 3.0):
        schedule.step(metric)
    assert epochs == [2, 4]


def test_plateau_thresholds_of_negative_metrics():
    """PyTorch's bounds: best * (1 - threshold), whatever best's sign."""
    for mode, kind, best, better, worse in [
        ("min", "rel", -1.0, -0.95, -0.85),
        ("max", "rel", -1.0, -1.05, -1.15),
        ("min", "abs", -1.0, -1.15, -1.05),
        ("max", "abs", -1.0, -0.85, -0.95),
    ]:
        s = schedules.ReduceLROnPlateau(optimizer(), mode=mode, threshold=0.1, threshold_mode=kind)
        assert s._is_better(better, best), (mode, kind)
        assert not s._is_better(worse, best), (mode, kind)
    down = schedules.ReduceLROnPlateau(optimizer(), factor=0.5, patience=0)
    assert isinstance(down, schedules.LRScheduler)
    for metric in (-1.0, -1.0, -1.0):
        down.step(metric)
    assert down.get_last_lr() == [1.0], "an equal negative metric is below -1 * (1 - threshold)"


def test_plateau_follows_added_groups():
    opt = optimizer()
    schedule = schedules.ReduceLROnPlateau(opt, factor=0.5, patience=0)
    fixed = schedules.ReduceLROnPlateau(opt, patience=0, min_lr=[0.1])
    opt.add_param_group({"params": [nn.Parameter(tt.zeros(1))], "lr": 3.0})
    for metric in (1.0, 2.0):
        schedule.step(metric)
    assert schedule.get_last_lr() == [0.5, 1.5]
    fixed.step(1.0)
    with pytest.raises(RuntimeError, match="2 parameter groups and min_lrs 1"):
        fixed.step(2.0)


def test_a_multi_step_schedule_goes_on_after_a_checkpoint(tmp_path):
    opt = optimizer()
    schedule = schedules.MultiStepLR(opt, [2, 4, 4], gamma=0.5)
    tt.save({"schedule": schedule.state_dict(), "opt": opt.state_dict()}, tmp_path / "x")
    found = tt.load(tmp_path / "x")
    assert found == {"schedule": schedule.state_dict(), "opt": opt.state_dict()}
    assert type(found["schedule"]["milestones"]) is collections.Counter
    other = optimizer(9.0)
    again = schedules.MultiStepLR(other, [1])
    again.load_state_dict(found["schedule"])
    other.load_state_dict(found["opt"])
    rates = []
    for _ in range(5):
        other.step()
        again.step()
        rates += again.get_last_lr()
    assert rates == [1, 0.5, 0.5, 0.125, 0.125]


def test_callable_objects_keep_their_attributes():
    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, epoch):
            return self.rate**epoch

    saved = schedules.LambdaLR(optimizer(1.0, 1.0), [Decay(0.5), lambda e: 1.0]).state_dict()
    assert saved["lr_lambdas"] == [{"rate": 0.5}, None]
    opt = optimizer(1.0, 1.0)
    schedule = schedules.LambdaLR(opt, [Decay(0.9), lambda e: 1.0])
    schedule.load_state_dict(saved)
    opt.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 1.0]


def test_a_schedule_written_for_pytorch():
    class WarmUp(schedules._LRScheduler):
        def __init__(self, optimizer, steps, last_epoch=-1):
            self.steps = steps
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            assert self._get_lr_called_within_step
            return [base * min(1.0, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]

    assert rates(lambda o: WarmUp(o, 4), 5) == [0.25, 0.5, 0.75, 1, 1]


def test_jumping_to_an_epoch():
    for make, at_five in [
        (lambda o: schedules.StepLR(o, 2, gamma=0.5), 0.25),
        (lambda o: schedules.MultiStepLR(o, [1, 4, 4, 6], gamma=0.5), 0.125),
        (lambda o: schedules.ExponentialLR(o, 0.5), 1 / 32),
        (lambda o: schedules.LinearLR(o, 0.25, total_iters=10), 0.625),
        (lambda o: schedules.CosineAnnealingLR(o, 10), 0.5),
        (lambda o: schedules.LambdaLR(o, lambda e: e / 10), 0.5),
    ]:
        opt = optimizer()
        schedule = make(opt)
        opt.step()
        with pytest.warns(UserWarning, match="is deprecated"):
            schedule.step(5)
        assert (schedule.last_epoch, schedule.get_last_lr()) == (5, pytest.approx([at_five]))


def test_going_on_takes_the_rates_as_they_are():
    for make in (lambda o, e: schedules.ExponentialLR(o, 0.5, last_epoch=e), lambda o, e: schedules.LinearLR(o, 0.5, last_epoch=e)):
        opt = optimizer()
        opt.param_groups[0].update(initial_lr=1.0, lr=0.25)
        assert make(opt, 2).get_last_lr() == [0.25]


def test_stepping_the_schedule_first_is_noticed():
    opt = optimizer()
    schedule = schedules.StepLR(opt, 1)
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
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
        (lambda: schedules.StepLR(optim.SGD, 1), TypeError, "StepLR: SGD, a class, is not an Optimizer; make the optimizer first"),
        (lambda: schedules.CyclicLR(optim.Adagrad([nn.Parameter(tt.zeros(1))]), 0.1, 0.2), ValueError, "give cycle_momentum=False"),
        (lambda: schedules.CyclicLR(opt, [0.1], 0.2), ValueError, "base_lr has 1 values, param_groups has 2"),
        (lambda: schedules.OneCycleLR(opt, 0.1), ValueError, "total_steps OR"),
        (
            lambda: schedules.SequentialLR(opt, [schedules.StepLR(opt, 1)], [2]),
            ValueError,
            "number of schedulers 1 and the number of milestones",
        ),
        (lambda: schedules.SequentialLR(opt, [schedules.ReduceLROnPlateau(opt)], []), ValueError, "one at index 0; step that by itself"),
        (lambda: schedules.ChainedScheduler([schedules.StepLR(optimizer(), 1)], opt), ValueError, "StepLR at index 0 has another"),
        (lambda: schedules.MultiplicativeLR(opt, 3), TypeError, "lr_lambda should be a function, but got int"),
        (lambda: schedules.LRScheduler(opt), NotImplementedError, r"define get_lr\(\)"),
    ]:
        with pytest.raises(kind, match=message):
            make()


def test_momentum_goes_against_the_rate():
    for kind in (optim.SGD, optim.Adam):
        opt = kind([nn.Parameter(tt.zeros(1))], lr=0.1, **({"momentum": 0.5} if kind is optim.SGD else {}))
        schedule = schedules.CyclicLR(opt, 0.1, 0.2, 2, base_momentum=0.6, max_momentum=0.8)
        found = []
        for _ in range(5):
            group = opt.param_groups[0]
            found.append(group["betas"][0] if kind is optim.Adam else group["momentum"])
            opt.step()
            schedule.step()
        assert found == pytest.approx([0.8, 0.7, 0.6, 0.7, 0.8])
    opt = optim.SGD([nn.Parameter(tt.zeros(1))], lr=0.1, momentum=0.5)
    schedule = schedules.OneCycleLR(opt, 1.0, 5, pct_start=0.4, anneal_strategy="linear", base_momentum=0.6, max_momentum=0.9)
    found = []
    for _ in range(5):
        found.append(opt.param_groups[0]["momentum"])
        opt.step()
        if len(found) < 5:
            schedule.step()
    assert found == pytest.approx([0.9, 0.6, 0.7, 0.8, 0.9])


def test_a_sequence_goes_on_from_its_state():
    def make(o):
        return schedules.SequentialLR(o, [schedules.LinearLR(o, 0.1, total_iters=3), schedules.CosineAnnealingWarmRestarts(o, 2)], [3])

    opt = optimizer()
    schedule = make(opt)
    for _ in range(4):
        opt.step()
        schedule.step()
    other = optimizer()
    again = make(other)
    other.load_state_dict(opt.state_dict())
    again.load_state_dict(schedule.state_dict())
    for _ in range(4):
        for o, s in ((opt, schedule), (other, again)):
            o.step()
            s.step()
        assert again.get_last_lr() == schedule.get_last_lr()
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        again._schedulers[1].get_lr()


TENSORS = {
    "step": lambda o: schedules.StepLR(o, 1, 0.5), "exponential": lambda o: schedules.ExponentialLR(o, 0.5),
    "lambda": lambda o: schedules.LambdaLR(o, lambda e: 0.5**e), "multiplicative": lambda o: schedules.MultiplicativeLR(o, lambda e: 0.5),
    "chained": lambda o: schedules.ChainedScheduler([schedules.StepLR(o, 1, 0.5)], o),
    "sequential": lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 1, 0.5), schedules.ConstantLR(o)], [4]),
    "plateau": lambda o: schedules.ReduceLROnPlateau(o, factor=0.5, patience=0, threshold=0.0),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_a_rate_that_is_a_tensor_is_told_as_one(make, device):
    rate = tt.tensor(0.5, device=device)
    opt = optimizer(rate, 1.0)
    schedule = make(opt)
    told = [schedule.get_last_lr()]
    for t in range(3):
        opt.step()
        schedule.step(*([float(t)] if hasattr(schedule, "patience") else []))
        told.append(schedule.get_last_lr())
    start = 1 if hasattr(schedule, "patience") else 0  # the first metric is better than none
    assert [x.item() for x, _ in told[start:]] == [0.5, 0.25, 0.125, 0.0625][: 4 - start]
    assert [x for _, x in told[start:]] == [1.0, 0.5, 0.25, 0.125][: 4 - start]
    assert all(x.dtype == tt.float32 and x.device == rate.device and x is not rate for x, _ in told)
    assert opt.param_groups[0]["lr"] is rate
    assert rate.item() == told[-1][0].item()
    kept = schedule.state_dict()
    assert kept["_last_lr"][0].item() == rate.item()
    if "base_lrs" in kept:
        assert [float(x) for x in kept["base_lrs"]] == [0.5, 1.0]
        assert isinstance(kept["base_lrs"][0], tt.Tensor)
        assert opt.param_groups[0]["initial_lr"].item() == 0.5


def test_rates_of_a_cycle_that_are_tensors_are_not_written_into():
    """Of a group whose rate was a number, too, which has a tensor from then on."""
    opt = optimizer(0.125, tt.tensor(0.125))
    schedule = schedules.CyclicLR(opt, tt.tensor(0.25), tt.tensor(0.75), step_size_up=2, cycle_momentum=False)
    found = []
    for _ in range(5):
        found.append([float(x) for x in schedule.get_last_lr()])
        opt.step()
        schedule.step()
    assert found == [[x, x] for x in (0.25, 0.5, 0.75, 0.5, 0.25)]
    assert [float(x) for x in (*schedule.base_lrs, *schedule.max_lrs)] == [0.25, 0.25, 0.75, 0.75]
