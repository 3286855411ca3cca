"""Programs of several runs in which tensors become other ones, and settings other settings, between what was called and what is asked for."""

from __future__ import annotations

from typing import Any

import tritensor as tt
from tests.lazy_evaluation.memory_programs import a, program, w


def _fresh() -> Any:
    return tt.tensor([1.0, 2.0, 3.0])


def _parameter(kept: dict[str, Any]) -> Any:
    return kept.setdefault("p", tt.tensor([1.0, 2.0], requires_grad=True))


# -- tensors that look elsewhere, or lie in another way
@program
def moved_in_some_runs(k: int, kept: dict[str, Any]) -> Any:
    x, y = _fresh(), tt.tensor([4.0, 5.0, 6.0])
    first, other = x * 2, y * 3
    if k % 2 == 0:
        x.data = y
    return first, other, x * 2


@program
def moved_below_views(k: int, kept: dict[str, Any]) -> Any:
    x = _fresh()
    v, d = x[1:], x[1:].detach()
    x.data = tt.ones(3)
    y, z = v * 2, d * 2
    x.add_(1)
    return x, y, z, v


@program
def turned(k: int, kept: dict[str, Any]) -> Any:
    x = tt.ones(2, 3)
    y = x * 2
    z = tt.ones(2, 3)
    y2 = tt.where(z > 0, z, z)
    z.t_()
    return y, y2, z, z._version


@program
def resized_between_runs(k: int, kept: dict[str, Any]) -> Any:
    x = kept.setdefault("x", _fresh())
    y = a * 2
    z = x * y.sum()
    x.resize_(2 + k % 2)
    return y, z, tuple(z.shape)


@program
def a_parameter_of_another_shape(k: int, kept: dict[str, Any]) -> Any:
    p, y = _parameter(kept), a * 2
    shape = tuple((p * y.sum()).shape)
    p.data = tt.ones(3 - k % 2)
    return shape, (p * y[0]).detach()


@program
def frozen_within_a_run(k: int, kept: dict[str, Any]) -> Any:
    p = _parameter(kept)
    z = p * 3
    p.requires_grad_(k % 3 != 1)
    y = p * 2
    p.requires_grad_()
    return z.requires_grad, y.requires_grad


@program
def asked_for_gradients_in_some_runs(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    if k % 3 == 0:
        y.requires_grad_()
    return (y * 3).requires_grad


# -- memory that several look at
@program
def a_row_and_all_of_it(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([[1.0, 2.0], [3.0, 4.0]])
    row = x[tt.tensor(1)]
    return row * 2, x.detach(), tt.nn.Parameter(x.detach(), requires_grad=False) + 1


@program
def a_view_that_is_there_in_some_runs(k: int, kept: dict[str, Any]) -> Any:
    x = kept.setdefault("x", tt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    v = kept.setdefault("v", x.view(2, 2)) if k % 2 == 0 else kept.setdefault("other", tt.ones(2, 2))
    return v * 2, x[0] * 3, x[0], x.detach()


@program
def views_of_what_is_computed_too(k: int, kept: dict[str, Any]) -> Any:
    x = _fresh()
    tt._foreach_add_([tt.clamp(x * x, -8, 8).detach(), x.detach()], 1)
    y = x.clone()
    return tt.broadcast_tensors(x, y)


@program
def written_beside_a_view(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    v = x[::2]
    x.data.add_(1)
    y, z = x.float(), v > 1
    v.index_add_(0, tt.tensor([0, 0]), tt.cat([v[:1], v[:1]]).detach())
    return y, z, v, x


@program
def written_without_elements(k: int, kept: dict[str, Any]) -> Any:
    x = tt.ones(1, 4)
    try:
        with tt.lazy():
            y = x * 3
            raise KeyError
    except KeyError:
        x[1:].add_(x[:-1])
    return y, x


@program
def places_without_elements(k: int, kept: dict[str, Any]) -> Any:
    x = (a > 9) * a
    none = x[x > 0]
    return tt.stack((none, none))[1].storage_offset(), none[:, None].expand(0, 2).storage_offset()


@program
def computed_while_looked_at(k: int, kept: dict[str, Any]) -> Any:
    w, x = kept.setdefault("w", tt.tensor([1.0, 2.0], requires_grad=True)), kept.setdefault("x", tt.tensor([[1, 2], [3, 4]]))
    (g,) = tt.autograd.grad(w.sum(), [w])
    x.index_add_(0, tt.tensor([0, 0]), tt.cat([x[:1], x[:1]]).detach() % 3)
    return g.sort(dim=0), x.clone()


# -- gradients
@program
def gradients_that_repeat_elements(k: int, kept: dict[str, Any]) -> Any:
    w = kept.setdefault("w", tt.tensor([1.0, 2.0, 3.0], requires_grad=True))
    (g,) = tt.autograd.grad((w + a).sum(), [w])
    return g, tuple(g.stride())


@program
def a_graph_that_began_before(k: int, kept: dict[str, Any]) -> Any:
    w = kept.setdefault("w", tt.tensor([[1.0, 2.0, 3.0]], requires_grad=True))
    y = w[0]
    y.data[::2][::2].mul_(1)
    y[:1].sum().backward(retain_graph=True)
    return w.grad.clone()


@program
def added_to_zeros(k: int, kept: dict[str, Any]) -> Any:
    p = _parameter(kept)
    if p.grad is not None:
        p.grad.zero_()
    _fresh().zero_()
    p.sum().backward(retain_graph=True)
    return p.grad.clone() if k % 2 else 0


# -- settings that change before what was called is computed
@program
def autocast_after_a_product(k: int, kept: dict[str, Any]) -> Any:
    m = kept.setdefault("m", tt.eye(3))
    y = m @ m
    with tt.autocast("cpu", dtype=tt.bfloat16):
        z = m @ m
    return y, z


@program
def a_default_device_after_ones(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    z = tt.ones(3) * y
    tt.set_default_device("meta")
    try:
        return str(z.device), z.tolist(), str(tt.ones(3).device)
    finally:
        tt.set_default_device(None)


@program
def hooks_of_saved_tensors_after_a_product(k: int, kept: dict[str, Any]) -> Any:
    p, packed = _parameter(kept), []
    y = p * p
    with tt.autograd.graph.saved_tensors_hooks(lambda t: packed.append(tuple(t.shape)) or t, lambda t: t):
        z = p * 2
    return len(packed), y.detach(), z.detach()


# -- arguments
@program
def a_tensor_as_a_bound(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    return y[(1 if k % 2 else tt.tensor(1)) :], (y + 1)[1:]


@program
def a_fraction_as_a_bound(k: int, kept: dict[str, Any]) -> Any:
    y = a * 2
    try:
        return y[(1.0 if k % 2 else 1) :]
    except (TypeError, IndexError) as error:
        return type(error).__name__


@program
def a_list_of_one_in_a_tuple(k: int, kept: dict[str, Any]) -> Any:
    y = kept.setdefault("m", tt.tensor([[1, 2, 3], [4, 5, 6]])) * 2
    return y[:, tt.tensor([1]) if k % 2 else 1]


@program
def windows_of_a_view_in_some_runs(k: int, kept: dict[str, Any]) -> Any:
    x = kept.setdefault("x", tt.tensor([[1.0, 2.0], [3.0, 4.0]]))[1] if k % 2 else kept.setdefault("y", tt.tensor([5.0, 6.0]))
    return x * 2, x.as_strided((1,), (1,), 0)


@program
def counted_through_a_twin_of_what_is_written(k: int, kept: dict[str, Any]) -> Any:
    x, y = _fresh(), tt.tensor(_fresh().detach().tolist())
    tt.mul(y, 2, out=y)
    tt._foreach_add_([x.detach(), y.detach()], 1)
    return x._version, y._version, x, y


@program
def nothing_in_the_place_of_a_tensor(k: int, kept: dict[str, Any]) -> Any:
    x, scale, shift = tt.ones(2, 4) * 2, tt.tensor([3.0] * 4), tt.tensor([5.0] * 4)
    if k % 3 == 0:
        scale = shift = None
    return tt.nn.functional.group_norm(x, 2, scale, shift), tt.nn.functional.linear(x, tt.ones(4, 4), shift)


@program
def nothing_in_the_place_of_a_leaf(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = x * 2
    return tt.nn.functional.linear(y, x, tt.tensor([5.0, 6.0]) if k % 3 else None), tt.clamp(y, x if k % 2 else None, x * 3)


@program
def gradients_recorded_behind_the_first_call(k: int, kept: dict[str, Any]) -> Any:
    y = w * 2
    with tt.no_grad() if k % 2 else tt.enable_grad():
        z = y * 3
        v = z + y
    return z.requires_grad, v.requires_grad, z.detach(), v.detach()


@program
def leaves_that_lie_in_another_way(k: int, kept: dict[str, Any]) -> Any:
    x = kept.setdefault("x", tt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]))
    return ((x.t() if k % 2 else x) * 2 + 1).sum(1), ((x if k % 2 else x.t()) * 2).sum(0) * 3


@program
def leaves_in_the_graph_or_not(k: int, kept: dict[str, Any]) -> Any:
    x = tt.tensor([1.0, 2.0, 3.0], requires_grad=bool(k % 2))
    y = x * 2
    z = y + a
    return z.requires_grad, z.detach()


@program
def another_way_behind_a_grad_mode(k: int, kept: dict[str, Any]) -> Any:
    with tt.no_grad():
        y = w * 2
        z = y + 1
    v = z - 1 if k % 4 == 3 else z * 3
    return y.requires_grad, z.requires_grad, v.requires_grad, v
