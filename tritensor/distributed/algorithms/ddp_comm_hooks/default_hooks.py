"""Communication hooks: gradients averaged as they are, or in 16 bits, which halves what is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.distributed.collectives import all_reduce
from tritensor.distributed.process_group import require_group
from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.process.future import Future
from tritensor.tensor.core import Tensor


def _average(process_group: Any, tensor: Tensor) -> Future[Any]:
    group = require_group("allreduce_hook", process_group)
    # Before the sum, so that float16 does not overflow.
    tensor.div_(group.size())
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future()


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """The average, as DistributedDataParallel computes it without a hook."""
    return _average(process_group, bucket.buffer()).then(lambda f: f.value()[0])


def _average_compressed(process_group: Any, bucket: Any, to: DType) -> Future[Any]:
    buffer = bucket.buffer()
    # Back into the bucket's own memory, of which the gradients are views.
    return _average(process_group, buffer.to(to)).then(lambda f: buffer.copy_(f.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """The average of the gradients in float16. What float16 cannot hold becomes inf."""
    return _average_compressed(process_group, bucket, dtypes.float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """The average of the gradients in bfloat16."""
    return _average_compressed(process_group, bucket, dtypes.bfloat16)


def _wrap_hook(hook: Callable[[Any, Any], Future[Any]], to: DType) -> Callable[[Any, Any], Future[Any]]:
    def compress(state: Any, bucket: Any) -> Future[Any]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(to))
        return hook(state, bucket).then(lambda f: buffer.copy_(_get_single(f.value())))

    return compress


def _get_single(value: Any) -> Tensor:
    found: Tensor = value[0] if isinstance(value, list | tuple) else value
    return found


def fp16_compress_wrapper(hook: Callable[[Any, Any], Future[Any]]) -> Callable[[Any, Any], Future[Any]]:
    """Another hook, given the gradients in float16."""
    return _wrap_hook(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Callable[[Any, Any], Future[Any]]) -> Callable[[Any, Any], Future[Any]]:
    """Another hook, given the gradients in bfloat16."""
    return _wrap_hook(hook, dtypes.bfloat16)
