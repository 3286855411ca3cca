"""CUDA graphs: the work of a block of Python recorded once and queued again by one call, as torch.cuda.graph does.

    step()                                  # warm up: gradients, momentum buffers and the like come to exist
    g = tt.cuda.CUDAGraph()
    with tt.cuda.graph(g):
        step()                              # recorded, not run
    for batch in loader:
        x.copy_(batch)                      # new values into the memory that was captured
        g.replay()                          # forward, backward, optimizer, zero_grad: one call of the driver

What a graph knows are addresses. Tensors that exist before the capture must be kept alive by the program; those made in it lie in a
private pool that lives as long as the graph, and hold values after a replay. Python numbers are frozen at what they were in
the capture: a learning rate that changes must be a tensor on the GPU. Random numbers are new ones at each replay, the same that
as many eager steps would draw, and a generator may be seeded between replays.
"""

from __future__ import annotations

import gc
import warnings
from typing import Any

from tritensor.cuda.runtime.active import runtime
from tritensor.cuda.streams.capture import Capture, Draws, capturing, refusal
from tritensor.cuda.streams.stream import Stream, StreamContext, synchronize
from tritensor.ground.errors import CaptureError
from tritensor.ground.thread_state import here, run_waiting, set_pool, stream_of

_MODES = ("global", "thread_local", "relaxed")


class PoolHandle:
    """A private pool of GPU memory, which graphs may share that are replayed in the order of their captures, one at a time.

    Made without a GPU; it belongs to that of the first capture that uses it.
    """

    __slots__ = ("__weakref__", "_pool", "_runtime", "index")

    def __init__(self) -> None:
        self._pool = 0
        self._runtime: Any = None
        self.index = -1

    def on(self, index: int) -> int:
        """The runtime's number of the pool, on a GPU. Raises CaptureError where it is another GPU's."""
        serving = runtime()
        if not self._pool:
            self._pool, self._runtime, self.index = serving.pool_create(index), serving, index
        elif self.index != index or self._runtime is not serving:
            raise CaptureError(f"pool: it belongs to cuda:{self.index}; a capture on cuda:{index} needs a pool of its own")
        return self._pool

    def __del__(self) -> None:
        if getattr(self, "_pool", 0):
            self._runtime.pool_release(self.index, self._pool)

    def __repr__(self) -> str:
        return f"PoolHandle({self._pool} on cuda:{self.index})" if self._pool else "PoolHandle(not used)"


def graph_pool_handle() -> PoolHandle:
    """A pool to be given to several captures as `pool=`."""
    return PoolHandle()


class CUDAGraph:
    """A recorded piece of work. `with tt.cuda.graph(g):` records it, `g.replay()` queues it on the current stream."""

    def __init__(self) -> None:
        self._graph = 0
        self._runtime: Any = None
        self._pool: PoolHandle | None = None
        self._draws: list[Draws] = []
        self._last: int | None = None  # the stream of the last replay
        self._begun: Capture | None = None
        self._segment: Any = None  # what ops were noted in before the capture
        self.index = -1

    def capture_begin(self, pool: PoolHandle | CUDAGraph | None = None, capture_error_mode: str = "relaxed") -> None:
        """Record what this thread queues on its current stream from now on, which must not be the default one.

        Args:
            pool: whose memory to use, `other.pool()` or graph_pool_handle(); None: a new pool.
            capture_error_mode: what the driver forbids meanwhile: "relaxed" nothing (what would break a capture is refused by
                tritensor itself), "thread_local" unsafe calls of this thread, "global" those of all threads, such as allocations
                of a data loader's. In every mode a wait for the whole GPU, by any thread and library, breaks a capture off.

        Raises CaptureError where it holds a graph already, another capture is in progress on this thread, or on the default stream.
        """
        index, stream = here.index, stream_of(here.index)
        if capture_error_mode not in _MODES:
            raise ValueError(f"capture_error_mode is one of {', '.join(_MODES)}, not {capture_error_mode!r}")
        if self._graph:
            raise CaptureError("capture_begin: this CUDAGraph holds a graph already; reset() it, or make another one")
        if here.capture is not None:
            raise CaptureError("capture_begin: this thread is capturing a graph already, and captures do not nest")
        if not stream:
            raise CaptureError(
                "capture_begin: the default stream cannot be captured; use `with tt.cuda.graph(g):`, or tt.cuda.stream(tt.cuda.Stream())"
            )
        run_waiting()
        handle = pool._pool if isinstance(pool, CUDAGraph) else pool
        handle = PoolHandle() if handle is None else handle
        number = handle.on(index)
        serving = runtime()
        serving.pool_use(index, number, stream)  # first: from here on no allocator call of any thread waits for the whole GPU
        try:
            serving.capture_begin(index, stream, capture_error_mode)
        except BaseException:
            serving.pool_leave(index, stream)
            raise
        set_pool(number)
        self._pool, self._runtime, self.index = handle, serving, index
        here.capture = self._begun = Capture(index, stream, number)
        self._segment, here.segment = here.segment, None  # what is captured runs, for the capture, at its place

    def capture_end(self) -> None:
        """The graph is complete; a warning where nothing was recorded.

        Raises CaptureError where this thread has begun none, or works on another stream than it has begun on; what the driver
        raises for a capture that is broken.
        """
        capture = self._leave("capture_end")
        try:
            self._graph, nodes = self._runtime.capture_end(capture.index, capture.first)
        finally:
            self._left(capture)
        self._draws = list(capture.draws.values())
        if not nodes:
            warnings.warn(
                f"the CUDA graph is empty: nothing was queued on {Stream.of(capture.index, capture.first)} while it was captured; "
                "work on the CPU, and on other streams, is not recorded",
                stacklevel=3,
            )

    def capture_abandon(self) -> None:
        """End a capture after an error in it: nothing is kept, and the process can go on, capture again included."""
        capture = self._leave("capture_abandon")
        try:
            self._runtime.capture_abandon(capture.index, capture.first)
        finally:
            self._left(capture)
            self._pool = None

    def _leave(self, name: str) -> Capture:
        capture = self._begun
        if capture is None or here.capture is not capture:
            raise CaptureError(f"{name}: this thread is not capturing into this CUDAGraph; capture_begin() comes first")
        return capture

    def _left(self, capture: Capture) -> None:
        """However the capture ended: this thread's work runs again."""
        here.capture = self._begun = None
        here.segment = self._segment
        set_pool(0)
        for draws in capture.draws.values():
            draws.finish()
        for index, stream in capture.streams:
            if index == capture.index:
                self._runtime.pool_leave(index, stream)
        here.place = None

    def replay(self) -> None:
        """Queue the recorded work on the current stream of its GPU; returns at once.

        Random numbers continue from where their generators stand, and move them on. Raises CaptureError where nothing was
        captured, or in a capture.
        """
        if not self._graph:
            raise CaptureError("replay: nothing was captured; `with tt.cuda.graph(g): ...` comes first")
        run_waiting()
        index = self.index
        if capturing(index) is not None:
            raise refusal("replays a graph inside another one", "capture the work itself, or replay one after the other")
        stream = stream_of(index)
        serving = self._runtime
        if self._draws:
            if self._last is not None and self._last != stream:  # the last replay must have read its words before they change
                Stream.of(index, stream).wait_stream(Stream.of(index, self._last))
            self._last = stream
            for draws in self._draws:
                draws.write(index, stream)
        serving.graph_launch(index, self._graph, stream)
        for draws in self._draws:
            draws.advance()

    def reset(self) -> None:
        """Forget the recorded work; its memory serves others once the tensors in it are gone. Another capture may follow."""
        graph, self._graph = self._graph, 0
        self._draws, self._last = [], None
        try:
            if graph:
                self._runtime.graph_destroy(self.index, graph)
        finally:
            self._pool = None

    def pool(self) -> PoolHandle:
        """The pool of its memory, for other captures. Raises CaptureError before the first capture."""
        if self._pool is None:
            raise CaptureError("pool: nothing was captured, so there is no memory yet; graph_pool_handle() makes a pool beforehand")
        return self._pool

    def __del__(self) -> None:
        if getattr(self, "_graph", 0):
            self.reset()

    def __repr__(self) -> str:
        return f"CUDAGraph(on cuda:{self.index})" if self._graph else "CUDAGraph(nothing captured)"


class graph:
    """`with tt.cuda.graph(g): ...` records the block into g; `with tt.cuda.graph() as g:` makes a CUDAGraph.

    On entering, the GPU is waited for, garbage is collected and cached memory is given back, and a stream of its own is made current.
    An error in the block ends the capture, and the process goes on; tensors made or written in it hold no values then.

    Args:
        cuda_graph: where to record to; None: a new one.
        pool, capture_error_mode: as for `CUDAGraph.capture_begin`.
        stream: what to capture; None: a stream of the current GPU other than the default one.

    Raises:
        CaptureError: on entering, as `CUDAGraph.capture_begin`; within, from what a graph cannot hold: `item()`, `.cpu()`, printing,
            a size that depends on data, tensors made from Python values, waiting, seeding. Each says what to do instead.
    """

    def __init__(
        self, cuda_graph: CUDAGraph | None = None, pool: PoolHandle | CUDAGraph | None = None, stream: Stream | None = None,
        capture_error_mode: str = "relaxed",
    ) -> None:  # fmt: skip
        self.cuda_graph = CUDAGraph() if cuda_graph is None else cuda_graph
        self.pool = pool
        self.stream = stream
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> CUDAGraph:
        stream = Stream() if self.stream is None else self.stream
        synchronize(stream.device_index)
        gc.collect()
        runtime().empty_cache()
        self._context = StreamContext(stream)
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._context.__exit__()
            raise
        return self.cuda_graph

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph.capture_abandon()
        finally:
            self._context.__exit__()
