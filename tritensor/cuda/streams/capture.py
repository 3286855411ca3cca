"""State of a graph capture on this thread: its streams and its random numbers; work that a graph cannot hold is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from tritensor.cuda.runtime.active import runtime
from tritensor.ground.call_site import called_name, user_line
from tritensor.ground.errors import CaptureError
from tritensor.ground.thread_state import here, stream_of

_WORDS = 16  # bytes: seed and offset, 64 bits each
_LOW = 0xFFFFFFFF
_MASK = 0xFFFFFFFFFFFFFFFF


class CapturedOffset(int):
    """An offset drawn in a capture. As a number it is where the draw would stand if it ran now; a kernel that is captured takes
    `relative` instead and adds it to the second of the two words in `state`, which every replay sets anew."""

    relative: int
    state: Any

    def __reduce__(self) -> Any:
        return int, (int(self),)


class Draws:
    """What a capture draws from one generator. `state` holds (seed, offset) on the GPU, `blocks` is how far one replay moves on."""

    __slots__ = ("_written", "base", "blocks", "generator", "key", "state")

    def __init__(self, generator: Any, index: int) -> None:
        self.generator = generator
        self.key: int = generator.key
        self.base: int = generator.offset
        self.blocks = 0
        self.state = runtime().allocate(_WORDS, index)
        self._written: tuple[int, ...] | None = None

    def draw(self, blocks: int) -> tuple[int, CapturedOffset]:
        """What Generator.draw gives."""
        generator = self.generator
        offset = CapturedOffset(generator.offset)
        offset.relative = (generator.offset - self.base) & _MASK
        offset.state = self.state
        generator.offset = (generator.offset + blocks) & _MASK
        return self.key, offset

    def finish(self) -> None:
        """The capture has ended: nothing was drawn yet, so the generator stands where it stood."""
        self.blocks = (self.generator.offset - self.base) & _MASK
        self.generator.offset = self.base

    def write(self, index: int, stream: int) -> None:
        """Before a replay, in stream order: the words become where the generator stands. Only words that differ are written."""
        key, offset = self.generator.key, self.generator.offset
        words = (key & _LOW, key >> 32, offset & _LOW, offset >> 32)
        before, self._written = self._written, None  # unknown, should the writing fail
        for i, word in enumerate(words):
            if before is None or before[i] != word:
                runtime().fill_word(index, self.state, 4 * i, word, stream)
        self._written = words

    def advance(self) -> None:
        """A replay was queued."""
        self.generator.offset = (self.generator.offset + self.blocks) & _MASK


class Capture:
    """A capture in progress: `index` its GPU, `first` the stream it began on, `pool` its private pool, `streams` the (GPU, raw handle) of
    all streams that belong to it, `draws` what it draws, by generator."""

    __slots__ = ("draws", "first", "index", "pool", "streams")

    def __init__(self, index: int, stream: int, pool: int) -> None:
        self.index = index
        self.first = stream
        self.pool = pool
        self.streams = {(index, stream)}
        self.draws: dict[int, Draws] = {}

    def takes(self, index: int) -> bool:
        """Whether what this thread queues on a GPU now becomes part of the graph."""
        return (index, stream_of(index)) in self.streams

    def join(self, index: int, stream: int) -> None:
        """A stream waits for an event of the capture: from now on it is captured, too, and its memory comes from the pool."""
        if (index, stream) not in self.streams:
            self.streams.add((index, stream))
            if index == self.index:
                runtime().pool_use(index, self.pool, stream)
                # the place names the pool, which is another one from here on
                here.place = None

    def draw(self, generator: Any, blocks: int) -> tuple[int, int]:
        """(seed, offset) for an op that draws: numbers that are other ones at each replay."""
        found = self.draws.get(id(generator))
        if found is None:
            found = self.draws[id(generator)] = Draws(generator, self.index)
        if generator.key != found.key:
            self.refuse_seed()
        return found.draw(blocks)

    def moves(self, generator: Any, key: int, offset: int) -> None:
        """A generator is about to be set to (key, offset). Going back to a place in this capture, as recomputation does, is fine."""
        found = self.draws.get(id(generator))
        # fork_rng and checkpointing put a generator back where it stands
        if (key, offset) == (generator.key, generator.offset):
            return
        # modulo 2^64 a place before the capture's begin is half a circle and more away
        if found is None or key != found.key or (offset - found.base) & _MASK >= 1 << 63:
            self.refuse_seed()

    def refuse_seed(self) -> NoReturn:
        """For a seed set on the host, which no replay would see."""
        raise refusal("sets the random seed", "seed before the capture or between replays, which draw where the generator then stands")

    def refuse_read(self, index: int) -> None:
        """For a copy from a GPU to the host. Does nothing where the GPU's current stream is not captured."""
        if self.takes(index):
            raise refusal(
                "copies from the GPU to the host, whose value would be that of no replay",
                "keep the tensor on the GPU and read it after replay(); what must steer the program (printing, an if, a size that "
                "depends on data) belongs outside of the captured part",
            )

    def refuse_write(self, index: int) -> None:
        """For a copy from ordinary host memory to a GPU. Does nothing where the GPU's current stream is not captured."""
        if self.takes(index):
            raise refusal(
                "copies from ordinary host memory to the GPU, which a replay would not do again",
                "make the tensor before the capture and write new values into it with copy_() before replay(), or make it on the "
                "GPU (zeros, full, arange), or copy from pinned memory with non_blocking=True",
            )

    def refuse_wait(self, index: int, stream: int | None = None) -> None:
        """For a wait of the host; `stream` None: for a whole GPU. Does nothing for a stream that is not captured."""
        if (index, stream) in self.streams or (stream is None and any(i == index for i, _ in self.streams)):
            raise refusal("waits for work that is being captured and does not run", "wait after replay()")


def refusal(does: str, remedy: str, during: bool = True) -> CaptureError:
    """The error for a thing that a graph cannot hold: who did it, at which line of the user's program, and what to do.

    `during`: it happened while a graph was captured.
    """
    when = "; a CUDA graph is being captured" if during else ""
    return CaptureError(f"{called_name()} ({user_line()}): {does}{when}. {remedy[0].upper()}{remedy[1:]}")


def capturing(index: int) -> Capture | None:
    """The capture that this thread's work on a GPU now goes into, or None."""
    capture = here.capture
    return capture if capture is not None and capture.takes(index) else None
