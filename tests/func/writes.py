"""Every way to write over a tensor, beside the same by a form that writes nothing: what transforms are asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tritensor as tt

F = tt.nn.functional
Step = Callable[
    [Any, Any], Any
]  # (y, z), matrices (3, 4) of numbers in (0, 1) that depend on one input: y written, or what it would become

# Methods that write no values of their own, or none that a gradient is asked of.
LEFT_OUT = {
    "addmv_": "writes a vector: a form of its own below",
    "apply_": "calls a Python function of numbers",
    "as_strided_": "changes the shape alone",
    "baddbmm_": "writes a batch: a form of its own below",
    "bernoulli_": "draws",
    "bitwise_and_": "of integers",
    "bitwise_invert_": "of integers",
    "bitwise_left_shift_": "of integers",
    "bitwise_not_": "of integers",
    "bitwise_or_": "of integers",
    "bitwise_right_shift_": "of integers",
    "bitwise_xor_": "of integers",
    "cauchy_": "draws",
    "detach_": "cuts the graph",
    "exponential_": "draws",
    "gcd_": "of integers",
    "geometric_": "draws",
    "igamma_": "has no gradient by its first argument",
    "igammac_": "has no gradient by its first argument",
    "lcm_": "of integers",
    "log_normal_": "draws",
    "map2_": "calls a Python function of numbers",
    "map_": "calls a Python function of numbers",
    "masked_scatter_": "takes as many elements as a mask says",
    "nextafter_": "has no gradient",
    "normal_": "draws",
    "random_": "draws",
    "requires_grad_": "a flag",
    "resize_": "changes the shape alone",
    "resize_as_": "changes the shape alone",
    "resize_as_sparse_": "changes the shape alone",
    "set_": "takes other memory",
    "share_memory_": "moves memory",
    "sparse_resize_": "of sparse tensors",
    "sparse_resize_and_clear_": "of sparse tensors",
    "squeeze_": "changes the shape alone",
    "swapaxes_": "changes the shape alone",
    "swapdims_": "changes the shape alone",
    "t_": "changes the shape alone",
    "transpose_": "changes the shape alone",
    "uniform_": "draws",
    "unsqueeze_": "changes the shape alone",
}


def rows() -> Any:
    """Row numbers for a matrix of 3 rows."""
    return tt.tensor([2, 0])


def places() -> Any:
    """For each of 2 x 4 elements a row."""
    return tt.tensor([[0, 1, 2, 0], [2, 0, 1, 1]])


# What a method is given beside the tensor (3, 4) that it writes; of methods that are not named here nothing.
ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    **{
        name: lambda z: (z,)
        for name in [
            "add_",
            "arctan2_",
            "atan2_",
            "copysign_",
            "copy_",
            "div_",
            "divide_",
            "eq_",
            "float_power_",
            "floor_divide_",
            "fmod_",
            "ge_",
            "greater_",
            "greater_equal_",
            "gt_",
            "heaviside_",
            "hypot_",
            "ldexp_",
            "le_",
            "less_",
            "less_equal_",
            "logical_and_",
            "logical_or_",
            "logical_xor_",
            "lt_",
            "mul_",
            "multiply_",
            "ne_",
            "not_equal_",
            "pow_",
            "remainder_",
            "sub_",
            "subtract_",
            "true_divide_",
            "xlogy_",
        ]
    },
    "addbmm_": lambda z: (z.reshape(2, 3, 2), z.reshape(2, 2, 3).repeat(1, 1, 2)[..., :4]),
    "addcdiv_": lambda z: (z, z + 2),
    "addcmul_": lambda z: (z, z.sin()),
    "addmm_": lambda z: (z, z.t() @ z),
    "addr_": lambda z: (z[:, 0], z[0]),
    "clamp_": lambda z: (0.3, z),
    "clamp_max_": lambda z: (z,),
    "clamp_min_": lambda z: (0.5,),
    "clip_": lambda z: (0.3, 0.6),
    "cumprod_": lambda z: (1,),
    "cumsum_": lambda z: (0,),
    "cumulative_prod_": lambda z: (1,),
    "cumulative_sum_": lambda z: (0,),
    "fill_": lambda z: (z[0, 0],),
    "fill_diagonal_": lambda z: (0.5,),
    "index_add_": lambda z: (0, rows(), z[:2]),
    "index_copy_": lambda z: (0, rows(), z[:2]),
    "index_fill_": lambda z: (0, rows(), z[0, 0]),
    "index_put_": lambda z: ((rows(),), z[0]),
    "index_reduce_": lambda z: (0, rows(), z[:2], "prod"),
    "lerp_": lambda z: (z, 0.3),
    "masked_fill_": lambda z: (tt.tensor([[True, False, True, False]]), z[0, 0]),
    "mvlgamma_": lambda z: (2,),
    "polygamma_": lambda z: (1,),
    "put_": lambda z: (places(), z[:2]),
    "renorm_": lambda z: (2, 0, 0.5),
    "scatter_": lambda z: (0, places(), z[:2] * 2),
    "scatter_add_": lambda z: (0, places(), z[:2]),
    "scatter_reduce_": lambda z: (0, places(), z[:2], "prod"),
}
# Where a method is defined only for larger numbers.
DOMAINS: dict[str, Callable[[Any], Any]] = {
    "acosh_": lambda y: y + 1,
    "arccosh_": lambda y: y + 1,
    "mvlgamma_": lambda y: y + 1,
}
# Methods whose form without the underscore is another thing, or is missing.
TWINS: dict[str, Step] = {
    "copy_": lambda y, z: z.clone(),
    "fill_": lambda y, z: z[0, 0].expand(3, 4).clone(),
    "fill_diagonal_": lambda y, z: tt.where(tt.eye(3, 4).bool(), 0.5, y),
    "zero_": lambda y, z: tt.zeros_like(y),
}


def methods() -> list[str]:
    """All methods that write over their tensor."""
    return [name for name in dir(tt.Tensor) if name.endswith("_") and not name.startswith("_")]


def _by_method(name: str) -> tuple[Step, Step]:
    given, place = ARGUMENTS.get(name, lambda z: ()), DOMAINS.get(name, lambda y: y)
    twin = TWINS.get(name) or (lambda y, z: getattr(y, name[:-1])(*given(z)))
    return lambda y, z: getattr(place(y * 1), name)(*given(z)), lambda y, z: twin(place(y), z)


def _by_option() -> dict[str, tuple[Step, Step]]:
    """Functionals and modules with `inplace=True`; dropouts draw and are left out, but for those that only have it outside of training."""
    found: dict[str, tuple[Step, Step]] = {}
    for where in (F, tt.nn):
        for name in dir(where):
            f = getattr(where, name)
            if name.startswith("_") or not callable(f) or "ropout" in name or "inplace" not in inspect.signature(f).parameters:
                continue
            args = (0.1, -0.2) if name.lower() == "threshold" else ()
            if where is F:
                found["F." + name] = (
                    lambda y, z, f=f, args=args: f(y.sub_(0.5), *args, inplace=True),
                    lambda y, z, f=f, args=args: f(y - 0.5, *args),
                )
            else:
                found["nn." + name] = (
                    lambda y, z, f=f, args=args: f(*args, inplace=True).eval()(y.mul_(z)),
                    lambda y, z, f=f, args=args: f(*args).eval()(y * z),
                )
    return found


def _then(write: Callable[[Any, Any], Any]) -> Step:
    """A write of a part, as a step."""

    def step(y: Any, z: Any) -> Any:
        write(y, z)
        return y

    return step


def _assigned(y: Any, index: Any, value: Any) -> None:
    y[index] = value


def _columns(*columns: Any) -> Any:
    return tt.stack(columns, 1)


def _rows(*rows: Any) -> Any:
    return tt.stack(rows)


def _buffer(y: Any, z: Any) -> Any:
    """A new tensor that is filled by parts and written through views."""
    out = y.new_zeros(3, 4)
    out[0] = y[0] * z[1]
    out[1:] += z[1:]
    out.t()[1:3].mul_(y.t()[1:3])
    return out.sin_()


def _buffered(y: Any, z: Any) -> Any:
    whole = tt.cat([(y[0] * z[1])[None], z[1:]])
    return tt.cat([whole[:, :1], whole[:, 1:3] * y[:, 1:3], whole[:, 3:]], 1).sin()


def _flat(y: Any, z: Any) -> Any:
    """A write through a view that only a contiguous tensor has."""
    y = y * 1 if y.is_contiguous() else y.contiguous()
    y.view(-1)[2:7].mul_(z.reshape(-1)[:5])
    return y


def _flattened(y: Any, z: Any) -> Any:
    y, z = y.reshape(-1), z.reshape(-1)
    return tt.cat([y[:2], y[2:7] * z[:5], y[7:]]).reshape(3, 4)


def _moved(y: Any, z: Any) -> Any:
    view = y.unsqueeze(0).movedim(2, 0).squeeze(1)
    view[1].mul_(3)
    view.pow_(2)
    return y


def _of_complex(y: Any, z: Any) -> Any:
    numbers = tt.complex(y, z)
    tt.view_as_real(numbers).mul_(y.unsqueeze(-1))
    return numbers.real + numbers.imag * 2


FORMS: dict[str, tuple[Step, Step]] = {
    "addmv_": (_then(lambda y, z: y[:, 0].addmv_(z, z[0])), lambda y, z: _columns(y[:, 0] + z @ z[0], y[:, 1], y[:, 2], y[:, 3])),
    "baddbmm_": (lambda y, z: y[None].baddbmm_(z[None], (z.t() @ z)[None])[0], lambda y, z: y + z @ (z.t() @ z)),
    "y[0] = row": (_then(lambda y, z: _assigned(y, 0, z[1])), lambda y, z: _rows(z[1], y[1], y[2])),
    "y[:, 1] = column": (
        _then(lambda y, z: _assigned(y, (slice(None), 1), z[:, 0])),
        lambda y, z: _columns(y[:, 0], z[:, 0], y[:, 2], y[:, 3]),
    ),
    "y[0] = number": (_then(lambda y, z: _assigned(y, 0, 2.5)), lambda y, z: _rows(y[1] * 0 + 2.5, y[1], y[2])),
    "y[rows] = rows": (_then(lambda y, z: _assigned(y, rows(), z[:2])), lambda y, z: _rows(z[1], y[1], z[0])),
    "y[rows] = row": (_then(lambda y, z: _assigned(y, rows(), z[0])), lambda y, z: _rows(z[0], y[1], z[0])),
    "y[mask] = number": (_then(lambda y, z: _assigned(y, y > 0.5, 0.0)), lambda y, z: tt.where(y > 0.5, 0.0, y)),
    "y[mask] = scalar": (_then(lambda y, z: _assigned(y, y > 0.5, z[0, 0])), lambda y, z: tt.where(y > 0.5, z[0, 0], y)),
    "y[:2] = y[1:]": (_then(lambda y, z: _assigned(y, slice(None, 2), y[1:])), lambda y, z: _rows(y[1], y[2], y[2])),
    "y[1:] += ...": (_then(lambda y, z: y[1:].__iadd__(z[1:])), lambda y, z: tt.cat([y[:1], y[1:] + z[1:]])),
    "y[:, ::2] *= ...": (
        _then(lambda y, z: y[:, ::2].mul_(z[:, ::2])),
        lambda y, z: _columns(y[:, 0] * z[:, 0], y[:, 1], y[:, 2] * z[:, 2], y[:, 3]),
    ),
    "y.t()[0]": (_then(lambda y, z: y.t()[0].exp_()), lambda y, z: _columns(y[:, 0].exp(), y[:, 1], y[:, 2], y[:, 3])),
    "diagonal": (_then(lambda y, z: y.diagonal().copy_(z[:, 0])), lambda y, z: y.diagonal_scatter(z[:, 0])),
    "unfold": (_then(lambda y, z: y.unfold(1, 2, 2)[:, 0].mul_(z[:, :2])), lambda y, z: tt.cat([y[:, :2] * z[:, :2], y[:, 2:]], 1)),
    "unflatten": (_then(lambda y, z: y.unflatten(1, (2, 2))[:, 0].mul_(z[:, :2])), lambda y, z: tt.cat([y[:, :2] * z[:, :2], y[:, 2:]], 1)),
    "a chain": (lambda y, z: y.mul_(y).add_(z).sin_().mul_(z), lambda y, z: (y * y + z).sin() * z),
    "by its own part": (lambda y, z: y.mul_(y[0, 0]), lambda y, z: y * y[0, 0]),
    "one row by another": (_then(lambda y, z: y[0].sigmoid_().mul_(y[1])), lambda y, z: _rows(y[0].sigmoid() * y[1], y[1], y[2])),
    "a new tensor": (_buffer, _buffered),
    "a flat view": (_flat, _flattened),
    "a moved dimension": (_moved, lambda y, z: _columns(y[:, 0], y[:, 1] * 3, y[:, 2], y[:, 3]) ** 2),
    "parts of complex numbers": (_of_complex, lambda y, z: y * y + z * y * 2),
}
STEPS = {**{name: _by_method(name) for name in methods() if name not in LEFT_OUT}, **_by_option(), **FORMS}
