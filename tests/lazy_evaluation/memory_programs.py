"""Programs of several runs that change from one to the next, by whom memory is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tritensor as tt

a = tt.tensor([1.0, 2.0, 3.0])
n = tt.tensor([1, 2, 3])
w = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)

PROGRAMS: list[Callable[[int, dict[str, Any]], Any]] = []


def program(f: Callable[[int, dict[str, Any]], Any]) -> Callable[[int, dict[str, Any]], Any]:
    """A program of one run, which is given the number of the run and what stays from run to run."""
    PROGRAMS.append(f)
    return f


# -- memory that others write
@program
def data_of_a_result(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    d = y.data
    y.add_(1)
    return d, y


@program
def data_written(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([1.0, 2.0, 3.0])
    y = x * 2
    x.data.add_(1)
    return y, tt.where(x > 2, x, 0)


@program
def data_set(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0]))
    y = p + 1
    p.data = tt.tensor([float(k), 5.0, 6.0])
    return y, p + 1


@program
def data_set_later(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0]))
    q = tt.tensor([float(k), 5.0, 6.0])
    y = p * 2
    if k > 2:
        p.data = q
    return y, p.clone()


@program
def memory_exchanged(k: int, kept: dict[str, Any]) -> Any:
    x, y, z = tt.tensor([1.0, 2.0, 3.0]), tt.tensor([4.0, 5.0, 6.0]), tt.tensor([7.0, 8.0, 9.0])
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    z.copy_(x)
    return x, y, z, old


@program
def data_set_to_a_result(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0]))
    y = a * 2
    p.data = y
    y.add_(1)
    return p.clone(), y


@program
def data_set_and_written(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0]))
    y = p * 2
    p.data = (a * 1).detach()
    p[p > 1] = 1
    return y, p.clone()


@program
def data_of_a_base_set(k: int, kept: dict[str, Any]) -> Any:
    p = tt.tensor([1.0, 2.0, 3.0, 4.0])
    row = p[1:3]
    row.add_(1)
    p.data = p.clone()
    row.add_(1)
    return p * 1, row * 1


@program
def base_that_looks_elsewhere(k: int, kept: dict[str, Any]) -> Any:
    made = sorted([tt.tensor([1.0, 2.0, 3.0, 4.0]) for _ in range(9)], key=lambda t: t.data_ptr())
    low, high = made[0], made[-1]
    row = high[1:3]
    high.data = low.detach()
    del low, made
    row.add_(1)
    return high * 1, row * 1


@program
def part_assigned(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    y[1:] = k
    z = y + 1
    y[y > 2] = 0
    return y, z


@program
def statistics(k: int, kept: dict[str, Any]) -> Any:
    mean, var = kept.setdefault("statistics", (tt.zeros(2), tt.ones(2)))
    y = mean * 2
    z = tt.nn.functional.batch_norm(tt.tensor([[1.0, 2.0], [3.0, float(k)]]), mean, var, training=True)
    return y, mean.clone(), (z * 64).round()


@program
def bytes_of_a_constant(k: int, kept: dict[str, Any]) -> Any:
    return tt.full((3,), 1.0).view(tt.int32) + n, tt.zeros(3) + 1


@program
def read_twice_and_in_another_order(k: int, kept: dict[str, Any]) -> Any:
    m = tt.tensor([[1.0, 2.0], [3.0, 4.0]]) * (k + 1)
    y = m * 2
    z = y + y.t()
    v = z.flip(0) * z
    return v - v.t(), (v + 1).reshape(-1)


@program
def memory_set(k: int, kept: dict[str, Any]) -> Any:
    y, z = a * 2, a * 3
    y.set_(z)
    z.add_(1)
    return y, z


@program
def shape_changed_in_place(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    y.unsqueeze_(0)
    return y, y + 1, tuple(y.shape)


@program
def leaf_written(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0]))
    y = p * 2
    p.add_(1)
    return y, p * 2, p.clone()


@program
def leaf_written_by_a_view(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0]))
    p[1:].add_(1)
    q = tt.tensor([1.0, 2.0, 3.0])
    q[:1].mul_(k)
    tt.add(q, 1, out=q)
    return p.clone(), p._version, q * 1, q._version


@program
def leaf_that_a_write_puts_in_the_graph(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([1.0, 2.0, 3.0])
    y = a * 2
    x.copy_(w * 2)
    y.add_(w)
    return type(x.grad_fn).__name__, type(y.grad_fn).__name__, x.requires_grad, y.requires_grad, x.detach(), y.detach()


@program
def view_of_a_written_leaf(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0]))
    v = p[1:]
    y = v * 2
    p.add_(1)
    return y, v * 2


@program
def views_written_by_index(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([[1.0, 2.0], [3.0, 4.0]])
    x.index_add_(0, tt.tensor([0, 0]), tt.cat([x[:1], x[:1]]))
    return x


# -- memory that numpy writes
@program
def numpy_shared(k: int, kept: dict[str, Any]) -> Any:
    array = np.ones(3, np.float32)
    x = tt.from_numpy(array)
    y = x + 1
    array[0] = k
    return y, x + 1


@program
def numpy_operand(k: int, kept: dict[str, Any]) -> Any:
    array = np.ones(3, np.float32)
    y = a + array
    array[0] = k
    z = a * tt.as_tensor(array)
    array[1] = 7
    return y, z


@program
def numpy_of_a_leaf(k: int, kept: dict[str, Any]) -> Any:
    x = kept.setdefault("x", tt.tensor([1.0, 2.0, 3.0]))
    y = x * 2
    x.numpy()[0] += 1
    return y, x * 2


@program
def numpy_of_a_parameter(k: int, kept: dict[str, Any]) -> Any:
    p = kept.setdefault("p", tt.tensor([1.0, 2.0, 3.0], requires_grad=True))
    y = p * 2
    if k == 2:
        kept["n"] = p.detach().numpy()
    if k >= 2:
        kept["n"][0] += 1
    z = p * 2
    if k >= 2:
        kept["n"][1] += 1
    return y.detach(), z.detach()


@program
def numpy_of_a_result(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    array = y.numpy()
    z = y + 1
    array[0] = 9
    return y, z


@program
def buffer_shared(k: int, kept: dict[str, Any]) -> Any:
    memory = bytearray(np.ones(3, np.float32).tobytes())
    y = tt.frombuffer(memory, dtype=tt.float32) * 2
    memory[:4] = np.float32(k).tobytes()
    return y


@program
def dlpack_shared(k: int, kept: dict[str, Any]) -> Any:
    array = np.ones(3, np.float32)
    x = tt.from_dlpack(array)
    y = x * 2
    array[0] = k
    return y, x * 2
