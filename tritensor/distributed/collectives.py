"""Collective communication of tensors, with PyTorch's names: every process of a group calls the same, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tritensor.distributed.arguments import (
    check_parts,
    check_tensor,
    check_tensors,
    describe_tensors,
    empty_output,
    empty_stack,
    find_root,
    stack_arrays,
    to_contiguous,
    to_writable,
    write_all,
    write_back,
)
from tritensor.distributed.backends.interface import Backend, Pending
from tritensor.distributed.calls import Call
from tritensor.distributed.process_group import ProcessGroup, is_outside, require_group
from tritensor.distributed.reduce_op import ReduceOp, check_op
from tritensor.distributed.work import Work
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.array import Array
from tritensor.tensor.core import Tensor


def finish_call(
    backend: Backend, pending: Pending, call: Call, async_op: bool, results: Sequence[Tensor] = (), finish: Callable[[], None] | None = None
) -> Work | None:
    """Wait for a call that has begun, or give the Work of it, which goes on behind the program."""
    # MPI moves data only while somebody tests the call, which nobody does until wait().
    if async_op:
        backend.drive_in_background(pending)
        return Work(pending, call, results, finish)
    pending.wait()
    if finish is not None:
        finish()
    return None


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put all processes' tensors together by `op`, in place, on all of them. The bits are the same on all, and from run to run."""
    if is_outside(group):
        return None
    world = require_group("all_reduce", group)
    check_tensor("all_reduce", "tensor", tensor)
    op = check_op("all_reduce", op, tensor.dtype)
    backend = world.backend_of("all_reduce", tensor)
    call = world.begin("all_reduce", f"{describe_tensors(tensor)} {op.name}")
    array = to_writable(tensor)
    pending = backend.all_reduce(call, op, array)
    return finish_call(backend, pending, call, async_op, [tensor], lambda: write_back("all_reduce", tensor, array))


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False, group_dst: int | None = None
) -> Work | None:
    """Put all processes' tensors together by `op`, in place, on process dst; the others' stay what they are."""
    if is_outside(group):
        return None
    world = require_group("reduce", group)
    check_tensor("reduce", "tensor", tensor)
    root = find_root("reduce", "dst", dst, group_dst, world)
    op = check_op("reduce", op, tensor.dtype)
    backend = world.backend_of("reduce", tensor)
    call = world.begin("reduce", f"{describe_tensors(tensor)} {op.name} to {root}")
    array = to_writable(tensor)
    pending = backend.reduce(call, op, root, array)
    # The others have received nothing: their tensors stay what they are.
    finish = (lambda: write_back("reduce", tensor, array)) if world.rank() == root else None
    return finish_call(backend, pending, call, async_op, [tensor], finish)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Give all processes the tensor of process src."""
    if is_outside(group):
        return None
    world = require_group("broadcast", group)
    check_tensor("broadcast", "tensor", tensor)
    root = find_root("broadcast", "src", src, group_src, world)
    backend = world.backend_of("broadcast", tensor)
    call = world.begin("broadcast", f"{describe_tensors(tensor)} from {root}")
    array = to_writable(tensor)
    pending = backend.broadcast(call, root, array)
    # The source only reads its tensor: bumping its version would make autograd refuse what was saved of it.
    finish = None if world.rank() == root else (lambda: write_back("broadcast", tensor, array))
    return finish_call(backend, pending, call, async_op, [tensor], finish)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write every process' tensor into tensor_list, one for each process, on all of them."""
    if is_outside(group):
        return None
    check_tensors("all_gather", "tensor_list", tensor_list)
    check_tensor("all_gather", "tensor", tensor)
    world = require_group("all_gather", group)
    check_parts("all_gather", "tensor_list", tensor_list, world, tensor)
    backend = world.backend_of("all_gather", tensor, *tensor_list)
    call = world.begin("all_gather", describe_tensors(tensor))
    # The list's tensors lie anywhere, and MPI and NCCL gather into one piece of memory.
    whole = empty_stack(tensor_list)
    pending = backend.all_gather(call, to_contiguous(tensor), whole)
    return finish_call(backend, pending, call, async_op, tensor_list, lambda: write_all("all_gather", tensor_list, whole))


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write every process' tensor, one after the other or stacked, into output_tensor."""
    if is_outside(group):
        return None
    name = "all_gather_into_tensor"
    world = require_group(name, group)
    check_tensor(name, "output_tensor", output_tensor)
    check_tensor(name, "input_tensor", input_tensor)
    _check_divided(name, "output_tensor", output_tensor, "input_tensor", input_tensor, world.size())
    backend = world.backend_of(name, input_tensor, output_tensor)
    call = world.begin(name, describe_tensors(input_tensor))
    out = empty_output(output_tensor)
    pending = backend.all_gather(call, to_contiguous(input_tensor), out)
    return finish_call(backend, pending, call, async_op, [output_tensor], lambda: write_back(name, output_tensor, out))


def _check_divided(name: str, whole_is: str, whole: Tensor, part_is: str, part: Tensor, size: int) -> None:
    """`whole` holds `size` parts: its first dimension is that many times the part's, or one that counts the parts stands before."""
    if whole.dtype != part.dtype:
        raise ShapeError(f"{name}: {whole_is} is {whole.dtype.name}, {part_is} {part.dtype.name}; give both of one type")
    # By the number of elements: PyTorch takes both (n * rows, ...) and (n, rows, ...).
    if whole.numel() != size * part.numel():
        raise ShapeError(
            f"{name}: {whole_is} {tuple(whole.shape)} holds {whole.numel()} elements, {part_is} {tuple(part.shape)} holds {part.numel()}: for "
            f"{size} process{'es' * (size > 1)} {whole_is} must hold {size * part.numel()}"
        )


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Write every process' tensor into gather_list on process dst; the others give None."""
    if is_outside(group):
        return None
    check_tensor("gather", "tensor", tensor)
    world = require_group("gather", group)
    root = find_root("gather", "dst", dst, group_dst, world)
    parts = _check_root_list("gather", "gather_list", "destination", gather_list, root, world, tensor)
    backend = world.backend_of("gather", tensor, *parts)
    call = world.begin("gather", f"{describe_tensors(tensor)} to {root}")
    whole = empty_stack(parts) if parts else None
    pending = backend.gather(call, root, to_contiguous(tensor), whole)
    finish = None if whole is None else (lambda: write_all("gather", parts, whole))
    return finish_call(backend, pending, call, async_op, parts, finish)


def _check_root_list(name: str, what: str, role: str, given: Any, root: int, world: ProcessGroup, like: Tensor) -> list[Tensor]:
    """The list of a tensor for each process that one of them gives, and no other."""
    if world.rank() == root:
        if not given:
            raise ArgumentError(f"{name}: argument {what} must be specified on the {role} rank; give a list of a tensor for each process")
        check_tensors(name, what, given)
        check_parts(name, what, given, world, like)
        return list(given)
    if given:
        raise ArgumentError(f"{name}: argument {what} must NOT be specified on non-{role} ranks; give None, or change the {role} rank")
    return []


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give each process its tensor of process src's scatter_list; the others give None."""
    if is_outside(group):
        return None
    check_tensor("scatter", "tensor", tensor)
    world = require_group("scatter", group)
    root = find_root("scatter", "src", src, group_src, world)
    parts = _check_root_list("scatter", "scatter_list", "source", scatter_list, root, world, tensor)
    backend = world.backend_of("scatter", tensor, *parts)
    call = world.begin("scatter", f"{describe_tensors(tensor)} from {root}")
    out = empty_output(tensor)
    pending = backend.scatter(call, root, stack_arrays(parts) if parts else None, out)
    return finish_call(backend, pending, call, async_op, [tensor], lambda: write_back("scatter", tensor, out))


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put all processes' lists together by `op`; each process gets its part."""
    if is_outside(group):
        return None
    check_tensor("reduce_scatter", "output", output)
    check_tensors("reduce_scatter", "input_list", input_list)
    op = check_op("reduce_scatter", op, output.dtype)
    world = require_group("reduce_scatter", group)
    check_parts("reduce_scatter", "input_list", input_list, world, output)
    backend = world.backend_of("reduce_scatter", output, *input_list)
    call = world.begin("reduce_scatter", f"{describe_tensors(output)} {op.name}")
    return _reduce_scatter(backend, call, op, stack_arrays(input_list), output, async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Put all processes' tensors together by `op`; each process gets its part of them, cut along the first dimension."""
    if is_outside(group):
        return None
    name = "reduce_scatter_tensor"
    check_tensor(name, "output", output)
    check_tensor(name, "input", input)
    op = check_op(name, op, input.dtype)
    world = require_group(name, group)
    _check_divided(name, "input", input, "output", output, world.size())
    backend = world.backend_of(name, output, input)
    call = world.begin(name, f"{describe_tensors(output)} {op.name}")
    return _reduce_scatter(backend, call, op, to_contiguous(input), output, async_op)


def _reduce_scatter(backend: Backend, call: Call, op: ReduceOp, whole: Array, output: Tensor, async_op: bool) -> Work | None:
    out = empty_output(output)
    pending = backend.reduce_scatter(call, op, whole, out)
    return finish_call(backend, pending, call, async_op, [output], lambda: write_back(call.name, output, out))


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False) -> Work | None:
    """Send each process a tensor of the list, and receive one of each. Tensors may differ in shape, not in type."""
    if is_outside(group):
        return None
    name = "all_to_all"
    check_tensors(name, "output_tensor_list", output_tensor_list)
    check_tensors(name, "input_tensor_list", input_tensor_list)
    world = require_group(name, group)
    for what, given in (("input_tensor_list", input_tensor_list), ("output_tensor_list", output_tensor_list)):
        if len(given) != world.size():
            raise ArgumentError(
                f"{name}: {what} holds {len(given)} tensors for {world.size()} process{'es' * (world.size() > 1)}; give one for each"
            )
    mine, kept = input_tensor_list[world.rank()], output_tensor_list[world.rank()]
    check_parts(name, "output_tensor_list", [kept] * world.size(), world, mine)
    types = {t.dtype.name for t in (*input_tensor_list, *output_tensor_list)}
    if len(types) > 1:
        raise ShapeError(f"{name}: tensors of {' and '.join(sorted(types))}; give all of one type")
    backend = world.backend_of(name, *input_tensor_list, *output_tensor_list)
    call = world.begin(name, mine.dtype.name)
    give, take = [t.numel() for t in input_tensor_list], [t.numel() for t in output_tensor_list]
    world.match(call, give, take)
    given, out = _concatenate(input_tensor_list, give), _empty_row(output_tensor_list[0], sum(take))
    pending = backend.all_to_all(call, given, give, out, take)

    def finish() -> None:
        start = 0
        for t, n in zip(output_tensor_list, take, strict=True):
            write_back(name, t, out[start : start + n])
            start += n

    return finish_call(backend, pending, call, async_op, output_tensor_list, finish)


def _empty_row(like: Tensor, n: int) -> Array:
    return like.new_empty(n)._array


def _concatenate(tensors: Sequence[Tensor], sizes: Sequence[int]) -> Array:
    out, start = _empty_row(tensors[0], sum(sizes)), 0
    for t, n in zip(tensors, sizes, strict=True):
        write_back("all_to_all", Tensor.wrap(out[start : start + n].reshape(t._array.shape)), t._array)
        start += n
    return out


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send each process a part of input, and receive one of each in output: equal parts along the first dimension, or of the given sizes."""
    if is_outside(group):
        return None
    name = "all_to_all_single"
    world = require_group(name, group)
    check_tensor(name, "output", output)
    check_tensor(name, "input", input)
    if output.dtype != input.dtype:
        raise ShapeError(f"{name}: output is {output.dtype.name}, input {input.dtype.name}; give both of one type")
    give = _check_splits(name, "input", input, input_split_sizes, world.size())
    take = _check_splits(name, "output", output, output_split_sizes, world.size())
    # The part that stays here can be checked without a message, in every debug level.
    if give[world.rank()] != take[world.rank()]:
        raise ShapeError(
            f"{name}: this process gives itself {give[world.rank()]} elements of input {tuple(input.shape)} and takes {take[world.rank()]} in output "
            f"{tuple(output.shape)}; make the sizes agree"
        )
    backend = world.backend_of(name, input, output)
    # Sizes may differ between ranks, so the type alone is compared; `match` compares sizes, of which MPI would leave some unwritten.
    call = world.begin(name, input.dtype.name)
    world.match(call, give, take)
    out = empty_output(output)
    pending = backend.all_to_all(call, to_contiguous(input), give, out, take)
    return finish_call(backend, pending, call, async_op, [output], lambda: write_back(name, output, out))


def _check_splits(name: str, what: str, t: Tensor, sizes: Sequence[int] | None, parts: int) -> list[int]:
    """Elements of each part. Raises ShapeError where the first dimension has no such parts."""
    rows = t.shape[0] if t.ndim else 1
    row = t.numel() // rows if rows else 0
    if not sizes:
        # Rows without elements divide into any number of parts.
        if rows % parts and row:
            raise ShapeError(
                f"{name}: {what} {tuple(t.shape)}: its first dimension does not divide into {parts} parts; give {what}_split_sizes"
            )
        return [rows // parts * row] * parts
    if len(sizes) != parts or sum(sizes) != rows or any(n < 0 for n in sizes):
        raise ShapeError(
            f"{name}: {what}_split_sizes {list(sizes)} of {what} {tuple(t.shape)}; give {parts} sizes, one for each process, that add up to {rows}"
        )
    return [n * row for n in sizes]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None) -> Work | None:
    """Wait for all processes of the group."""
    if is_outside(group):
        return None
    world = require_group("barrier", group)
    backend = world.backends.get("cpu") or world.backends["cuda"]
    call = world.begin("barrier")
    pending = backend.barrier(call)
    if async_op:
        return finish_call(backend, pending, call, True)
    # The caller's timeout holds for this call alone, the group's for all others.
    pending.wait(None if timeout is None else timeout.total_seconds())
    return None


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """barrier(group, timeout=timeout), whose error names all processes that do not come."""
    barrier(group, timeout=timeout)
