"""Histories of optimizers: settings, groups, schedules, gradients that are missing, saving and restoring half way."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.drawing import literal
from tests.fuzz.judges import Judge, beside_torch, equal_pairs, errors, twice
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program

_COMMON = {"maximize": ("True",), "foreach": ("True", "False"), "weight_decay": ("0.1", "0.5")}
_ADAM = {**_COMMON, "betas": ("(0.5, 0.9)", "(0.0, 0.99)"), "eps": ("1e-3",), "lr": ("0.1", "0.5", "tt.tensor(0.1)")}
OPTIMIZERS: dict[str, dict[str, tuple[str, ...]]] = {
    "SGD": {**_COMMON, "lr": ("0.1", "0.5"), "momentum": ("0.9", "0.5"), "nesterov": ("True",), "dampening": ("0.1",), "fused": ("True",)},
    "Adam": {**_ADAM, "amsgrad": ("True",), "fused": ("True",), "decoupled_weight_decay": ("True",)},
    "AdamW": {**_ADAM, "amsgrad": ("True",), "fused": ("True",)},
    "RMSprop": {**_COMMON, "lr": ("0.1",), "alpha": ("0.9",), "momentum": ("0.9",), "centered": ("True",), "eps": ("1e-3",)},
    "Adagrad": {**_COMMON, "lr": ("0.1",), "lr_decay": ("0.1",), "initial_accumulator_value": ("0.5",)},
    "Adadelta": {**_COMMON, "lr": ("1.0", "0.5"), "rho": ("0.5",)},
    "Adamax": {**_ADAM},
    "NAdam": {**_ADAM, "momentum_decay": ("0.01",), "decoupled_weight_decay": ("True",)},
    "RAdam": {**_ADAM, "decoupled_weight_decay": ("True",)},
    "ASGD": {**_COMMON, "lr": ("0.1",), "lambd": ("0.01",), "alpha": ("0.5",), "t0": ("2",)},
    "Rprop": {"lr": ("0.1",), "etas": ("(0.4, 1.3)",), "step_sizes": ("(1e-3, 1.0)",), "maximize": ("True",)},
    "Adafactor": {"lr": ("0.1",), "weight_decay": ("0.1",), "maximize": ("True",), "beta2_decay": ("-0.5",)},
    "Muon": {"lr": ("0.1",), "weight_decay": ("0.0", "0.1"), "momentum": ("0.9",), "nesterov": ("False",)},
}
SCHEDULES = (
    "StepLR(opt, 2, 0.5)", "ExponentialLR(opt, 0.9)", "MultiStepLR(opt, [1, 3])", "CosineAnnealingLR(opt, 3, 0.01)", "LinearLR(opt, 0.5, total_iters=2)", "OneCycleLR(opt, 0.5, total_steps=20)", "CyclicLR(opt, 0.01, 0.1, 2, cycle_momentum=False)",
    "LambdaLR(opt, lambda t: 1 / (t + 1))", "ConstantLR(opt, 0.5, 2)", "PolynomialLR(opt, 4, 2.0)", "CosineAnnealingWarmRestarts(opt, 2)", "MultiplicativeLR(opt, lambda t: 0.9)", "SequentialLR(opt, [tt.optim.lr_scheduler.ConstantLR(opt, 0.5, 2), tt.optim.lr_scheduler.ExponentialLR(opt, 0.9)], [2])",
    "ChainedScheduler([tt.optim.lr_scheduler.ConstantLR(opt, 0.5, 2), tt.optim.lr_scheduler.ExponentialLR(opt, 0.9)])",
)  # fmt: skip


def settings(rng: random.Random, name: str) -> str:
    """Keyword arguments of an optimizer."""
    chosen = [k for k in OPTIMIZERS[name] if rng.random() < (0.8 if k == "lr" else 0.3)]
    if "lr" not in chosen and name in ("SGD",):
        chosen.append("lr")
    if "foreach" in chosen and "fused" in chosen and rng.random() < 0.9:
        chosen.remove("fused")
    return ", ".join(f"{k}={rng.choice(OPTIMIZERS[name][k])}" for k in chosen)


def _made(rng: random.Random, name: str, count: int) -> str:
    names = [f"p{k}" for k in range(count)]
    if rng.random() < 0.3 and count > 1:
        own = settings(rng, name).replace("foreach=True", "foreach=False").split(", ")[0]
        options = ", ".join(
            f"'{s.partition('=')[0]}': {s.partition('=')[2]}"
            for s in [own]
            if s and "(" not in s and "foreach" not in s and "fused" not in s
        )
        return f"tt.optim.{name}([{{'params': [p0]{', ' + options if options else ''}}}, {{'params': [{', '.join(names[1:])}]}}], {settings(rng, name)})"
    return f"tt.optim.{name}([{', '.join(names)}], {settings(rng, name)})"


def _gradients(rng: random.Random, shapes: list[tuple[int, ...]], dtype: str) -> list[str]:
    """Gradients of every parameter, by hand or by a loss."""
    if rng.random() < 0.3:
        total = " + ".join(f"(p{k} * p{k}).sum()" for k in range(len(shapes)) if rng.random() < 0.8) or "(p0 * p0).sum()"
        return [f"({total}).backward()"]
    return [f"p{k}.grad = {literal(rng, s, dtype) if rng.random() < 0.85 else 'None'}" for k, s in enumerate(shapes)]


def draw(rng: random.Random) -> Program:
    """Parameters, an optimizer, steps, with what people do between them."""
    name = rng.choice(list(OPTIMIZERS))
    dtype = rng.choice(("float32", "float32", "float64", "bfloat16"))
    sizes = [(2, 2), (3, 2)] if name == "Muon" else [(2,), (2, 3), (), (0,), (3,), (1, 2, 2)]
    shapes = [rng.choice(sizes) for _ in range(rng.randint(1, 3))]
    lines = [f"p{k} = nn.Parameter({literal(rng, s, dtype)})" for k, s in enumerate(shapes)]
    lines.append(f"opt = {_made(rng, name, len(shapes))}")
    if rng.random() < 0.4:
        lines.append(f"sched = tt.optim.lr_scheduler.{rng.choice(SCHEDULES)}")
    scheduled = "sched" in lines[-1]
    for k in range(rng.randint(2, 5)):
        lines += _gradients(rng, shapes, dtype)
        lines.append("opt.step()" if rng.random() < 0.9 else f"loss{k} = opt.step(lambda: (p0 * p0).sum())")
        if scheduled:
            lines += ["sched.step()", f"lr{k} = sched.get_last_lr()"]
        if rng.random() < 0.4:
            lines += _between(rng, name, dtype, k, scheduled, [f"p{i}" for i in range(len(shapes))])
    return Program(
        (
            *lines,
            f"end = {tuple(f'p{i}' for i in range(len(shapes)))}".replace("'", ""),
            "state = {k: v for k, v in opt.state_dict()['state'].items()}",
        )
    )


def _between(rng: random.Random, name: str, dtype: str, k: int, scheduled: bool, names: list[str]) -> list[str]:
    """Between two steps: the restored optimizer of a copy must do what this one does."""
    return rng.choice([
        ["opt.zero_grad()"], ["opt.zero_grad(set_to_none=False)"], ["opt.load_state_dict(opt.state_dict())"], ["opt.load_state_dict(copy.deepcopy(opt.state_dict()))"], ["opt.param_groups[0]['lr'] = 0.25"],
        [f"q{k} = nn.Parameter({literal(rng, (2, 2), dtype)})", f"opt.add_param_group({{'params': [q{k}]}})", f"q{k}.grad = {literal(rng, (2, 2), dtype)}"] if not scheduled else ["sched.load_state_dict(sched.state_dict())"],
        [f"groups{k} = [{{n: v for n, v in g.items() if n != 'params'}} for g in opt.state_dict()['param_groups']]"], ["with tt.no_grad(): p0.mul_(0.5)"], [f"keys{k} = sorted(opt.state_dict()['state'])"],
        _restored(k) if len(names) == 1 else ["opt.zero_grad()"],
    ])  # fmt: skip


def _restored(k: int) -> list[str]:
    """Another optimizer of the same kind, with this one's state, steps beside it."""
    return [
        "twin = nn.Parameter(p0.detach().clone())",
        "other = type(opt)([twin], lr=0.1)",
        "loaded = other.load_state_dict(copy.deepcopy(opt.state_dict()))",
        "twin.grad = None if p0.grad is None else p0.grad.clone()",
        "stepped = loaded, opt.step(), other.step()",
        f"left{k} = stepped[:0], p0.detach()",
        f"right{k} = stepped[:0], twin.detach()",
    ]


def judges(torch: Any) -> list[Judge]:
    return [beside_torch(torch), equal_pairs] if torch is not None else [errors, twice, equal_pairs]


KIND = Kind("optimizers", draw, judges, weight=4)
