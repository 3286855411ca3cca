"""torch._dynamo._trace_wrapped_higher_order_op: within vmap, tensors index tensors. They always do so here."""

import contextlib


class TransformGetItemToIndex(contextlib.AbstractContextManager["TransformGetItemToIndex"]):
    """A context that changes nothing: `table[i]` with a tensor i of one example takes each example's element by itself."""

    def __exit__(self, *_: object) -> None:
        return None
