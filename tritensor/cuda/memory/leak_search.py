"""Search for the owners of a tensor: a walk from its memory up over Python's references to variables that can be named."""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import CellType, CoroutineType, FrameType, FunctionType, GeneratorType, ModuleType, TracebackType
from typing import Any, NamedTuple

from tritensor.cuda.memory.report import Accounts, place_of, size
from tritensor.cuda.memory.storage import Storage

_MOST_OBJECTS = 5000  # looked at in one search
_MOST_SCANS = 40  # walks over the whole heap
_SHOWN = 4  # holders told of one tensor
_QUIET = {
    ("CudaArray", "storage"),
    ("Tensor", "_array"),
    ("Parameter", "_array"),
    ("Buffer", "_array"),
    ("Tensor", "_extra"),
    ("_Saved", "tensor"),
}
_TABLES = ("_parameters", "_buffers", "_modules")  # of nn.Module: model._modules["fc1"] is model.fc1 to its user
_OURS = (__file__, os.path.join(os.path.dirname(__file__), "statistics.py"))  # frames that hold what they look for
_OPTIMIZED = 0x1  # a code flag: the frame's f_locals is a copy


class Hop(NamedTuple):
    """One step up: `holder` is the id of the object that holds (0: none, a variable that can be named), `kind` and `name` say how."""

    holder: int
    kind: str
    name: str = ""


def _locals(frame: FrameType) -> list[tuple[str, Any]]:
    """A frame's variables. Before Python 3.13 the dict of them stays with the frame, and would keep them alive: it is emptied."""
    table = frame.f_locals
    found = list(table.items())
    if frame.f_code.co_flags & _OPTIMIZED and type(table) is dict:
        table.clear()
    return found


def _at(frame: FrameType) -> str:
    return f"{frame.f_code.co_qualname} ({place_of(frame.f_code, frame.f_lasti)})"


def _key(key: Any) -> str:
    """A dict's key for people. Never the repr of a user's object, which may be long, slow, or wait for the GPU."""
    if isinstance(key, str | int | float | bytes | bool | None):
        text = repr(key)
        return text if len(text) <= 40 else text[:37] + "..."
    return f"<{type(key).__name__}>"


def _running() -> dict[int, list[str]]:
    """id -> names of what local variables of running functions hold, in all threads; the collector does not know of them."""
    found: dict[int, list[str]] = {}
    tops = list(sys._current_frames().values())
    while tops:
        frame: FrameType | None = tops.pop()  # no variable may keep this function's own frame: it would be a cycle
        while frame is not None:
            if frame.f_code.co_filename not in _OURS and frame.f_locals is not frame.f_globals:
                for name, value in _locals(frame):
                    found.setdefault(id(value), []).append(f"local variable {name} of {_at(frame)}")
                    del value
            frame = frame.f_back
    return found


class _Graph:
    """The recorded graph, read once: who saved which object, and which tensors hang at which node."""

    def __init__(self, objects: Iterable[Any]) -> None:
        node = getattr(sys.modules.get("tritensor.autograd.node"), "Node", None)
        tensor = getattr(sys.modules.get("tritensor.tensor.core"), "Tensor", None)
        self.node: Any = node or _Graph  # no node is an instance of this
        self.up: dict[int, list[tuple[Any, Hop]]] = {}
        self.parts: set[int] = set()  # the tuples inside nodes
        if node is None or tensor is None:
            return
        for found in objects:
            if isinstance(found, node):
                self._read(found)
            elif (
                isinstance(found, tensor) and not hasattr(type(found), "becomes") and found._node is not None
            ):  # it is there, and not promised
                self._note(found._node, found, Hop(id(found), "graph"))

    def _note(self, held: Any, holder: Any, hop: Hop) -> None:
        self.up.setdefault(id(held), []).append((holder, hop))

    def _read(self, node: Any) -> None:
        me, name = id(node), node.op.name
        self.parts.update([id(node.inputs), id(node.outputs), id(node.edges)])
        for i, x in enumerate(node.inputs or ()):
            if x is not None:
                self._note(x, node, Hop(me, "saved", f"{name} saved its input {node.op.inputs[min(i, len(node.op.inputs) - 1)]}"))
        for pair in node.outputs or ():
            if pair is not None:
                self.parts.add(id(pair))
                self._note(pair[0], node, Hop(me, "saved", f"{name} saved its output"))
        context: Any = getattr(node, "context", None)  # of a user's Function
        for kept in getattr(context, "_saved", ()):
            self.parts.update([id(context._saved), id(kept)])
            x = getattr(kept, "tensor", None)  # with hooks on saved tensors there is none
            self._note(x if x is not None else kept, node, Hop(me, "saved", f"{name} saved it with save_for_backward"))
        for edge in node.edges:
            if edge is not None:
                leaf = not isinstance(edge, self.node)
                self._note(edge, node, Hop(me, "saved", f"a leaf of {name}") if leaf else Hop(me, "quiet"))


class _Search:
    """Goes up from `targets` level by level; `up` then says of each object seen, by id, who holds it and how."""

    def __init__(self, targets: list[Any]) -> None:
        self.up: dict[int, list[Hop]] = {}
        self.types: dict[int, str] = {}
        self.cut_short = False
        self._running = _running()
        self._modules = {id(m.__dict__): m.__name__ for m in list(sys.modules.values()) if isinstance(m, ModuleType)}
        self._graph = _Graph(gc.get_objects())
        self._objects: dict[int, Any] = {}  # keeps what was seen, so that an id stays one object's
        level, scans = targets, 0
        while level:
            for x in level:
                self._objects[id(x)] = x
            if len(self._objects) > _MOST_OBJECTS or scans >= _MOST_SCANS:
                self.cut_short = True
                break
            scans += any([not isinstance(x, self._graph.node) for x in level])
            level = self._above(level, targets)
        # the search must not itself be who keeps them
        self._objects.clear()
        self._graph.up.clear()

    def _above(self, level: list[Any], targets: list[Any]) -> list[Any]:
        """Note who holds the objects of a level; the holders not seen before."""
        above: dict[int, Any] = {}
        asked: dict[int, Any] = {}
        for x in level:
            hops = self.up[id(x)] = [Hop(0, "root", name) for name in self._running.get(id(x), ())]
            self.types[id(x)] = f"function {x.__qualname__}" if isinstance(x, FunctionType) else type(x).__name__
            for holder, hop in self._graph.up.get(id(x), ()):
                hops.append(hop)
                above[id(holder)] = holder
            if id(x) not in self._graph.up or not isinstance(x, self._graph.node):
                asked[id(x)] = x
        values = list(asked.values())
        mine = {id(o) for o in (level, targets, above, asked, values, self._objects)}
        holders = gc.get_referrers(*values) if values else []
        for holder in holders:
            if id(holder) in mine or id(holder) in self._graph.parts or isinstance(holder, self._graph.node):
                continue
            if isinstance(holder, FrameType) and holder.f_code.co_filename in _OURS:
                continue
            for child, hop in self._hops(holder, asked):
                self.up[child].append(hop)
                if hop.holder:
                    above[id(holder)] = holder
        return [x for i, x in above.items() if i not in self._objects]

    def _hops(self, holder: Any, wanted: dict[int, Any]) -> Iterator[tuple[int, Hop]]:
        """How `holder` holds each of the objects that it holds of those wanted."""
        me = id(holder)
        named = list(self._names(holder, wanted))
        seen = {child for child, _, _ in named}
        for child, kind, name in named:
            yield child, Hop(0 if kind == "root" else me, kind, name)
        for held in gc.get_referents(holder):
            if id(held) in wanted and id(held) not in seen:
                seen.add(id(held))
                yield id(held), Hop(me, "inside", type(holder).__name__)

    def _names(self, holder: Any, wanted: dict[int, Any]) -> Iterator[tuple[int, str, str]]:
        if isinstance(holder, dict):
            module = self._modules.get(id(holder))
            for key, value in list(holder.items()):
                if id(value) in wanted:
                    yield (id(value), "root", f"{module}.{key}") if module else (id(value), "item", _key(key))
                if id(key) in wanted:
                    yield id(key), "key", ""
        elif isinstance(holder, list | tuple | deque):
            for i, value in enumerate(tuple(holder)):
                if id(value) in wanted:
                    yield id(value), "item", str(i)
        elif isinstance(holder, FrameType):
            if holder.f_locals is not holder.f_globals:
                yield from [(id(v), "local", f"{name} of {_at(holder)}") for name, v in _locals(holder) if id(v) in wanted]
        elif isinstance(holder, FunctionType):
            if id(holder.__closure__) in wanted:
                names = ",".join(holder.__code__.co_freevars)
                yield id(holder.__closure__), "closure", f"{names} of {holder.__qualname__} ({place_of(holder.__code__, 0)})"
        elif isinstance(holder, CellType | TracebackType):
            yield from [(id(x), "quiet", "") for x in gc.get_referents(holder) if id(x) in wanted]
        elif isinstance(holder, GeneratorType | CoroutineType):
            frame = holder.gi_frame if isinstance(holder, GeneratorType) else holder.cr_frame
            if frame is not None:
                yield from [(id(v), "local", f"{name} of {_at(frame)}") for name, v in _locals(frame) if id(v) in wanted]
        elif isinstance(holder, type):
            yield from [
                (id(x), "class", f"{holder.__module__}.{holder.__qualname__}") for x in (gc.get_referents(holder)) if id(x) in wanted
            ]
        else:
            yield from self._attributes(holder, wanted)

    def _attributes(self, holder: Any, wanted: dict[int, Any]) -> Iterator[tuple[int, str, str]]:
        if isinstance(holder, BaseException):
            if id(holder.__traceback__) in wanted:
                yield id(holder.__traceback__), "traceback", type(holder).__name__
            for name in ("__cause__", "__context__"):
                if id(getattr(holder, name)) in wanted:
                    yield id(getattr(holder, name)), "attribute", name
        fields = getattr(holder, "__dict__", None)
        if type(fields) is dict:
            if id(fields) in wanted:
                yield id(fields), "fields", ""
            yield from [(id(v), "attribute", str(k)) for k, v in list(fields.items()) if id(v) in wanted]
        for cls in type(holder).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                value = getattr(holder, name, None) if name not in ("__dict__", "__weakref__") else None
                if value is not None and id(value) in wanted:
                    yield id(value), "quiet" if (type(holder).__name__, name) in _QUIET else "attribute", name

    # from ids to words
    def roots(self, target: int) -> list[str]:
        """The variables that hold the target, nearest first."""
        found: list[str] = []
        seen = {target}
        queue: deque[tuple[int, tuple[Hop, ...]]] = deque([(target, ())])
        while queue:
            at, path = queue.popleft()
            for hop in self.up.get(at, ()):
                if not hop.holder:
                    text = _words(hop.name, path)
                    if text not in found:
                        found.append(text)
                elif hop.holder not in seen:
                    seen.add(hop.holder)
                    queue.append((hop.holder, (*path, hop)))
        return found

    def without_root(self, target: int) -> str:
        """What to say of a target that no variable holds."""
        if self.cut_short:
            return f"no variable found among the {_MOST_OBJECTS} objects looked at"
        chain, at = [target], target
        while self.up.get(at):
            at = next((h.holder for h in self.up[at] if h.holder in chain), self.up[at][0].holder)
            if at in chain:
                names = [self.types[i] for i in chain[chain.index(at) :]]
                return f"a reference cycle ({' <- '.join([*names, names[0]])}); gc.collect() frees it"
            chain.append(at)
        last = self.types.get(at, "object")
        if at == target:
            return "nothing that Python's collector sees: a value inside a running expression, or C code"
        return f"a {last} that nothing visible holds: a value inside a running expression, an exception being handled, or C code"


def _words(root: str, path: tuple[Hop, ...]) -> str:
    """A path from the object up to a variable, told from the variable down."""
    text, merge = root, False
    names: list[str] = []
    for hop in reversed(path):
        kind, name = hop.kind, hop.name
        if kind == "closure":
            variables, _, function = name.partition(" of ")
            names, text = variables.split(","), f"{function}, which is {text}"
        elif kind == "item" and names:
            text, names = f"closure variable {names[int(name)]} of {text}", []
        elif kind in ("fields", "class"):
            text, merge = (name or text), True
        elif kind == "attribute" and name in _TABLES:
            merge = True
        elif kind == "item" and merge:
            name = name.strip("'")
            text, merge = (text, True) if name in _TABLES else (f"{text}.{name}", False)
        elif kind == "item":
            text = f"{text}[{name}]"
        elif kind == "attribute":
            text, merge = (
                (f"a view of it, {text}" if name == "base" else f"{text}.{name.removeprefix('_') if name == '_grad' else name}"),
                False,
            )
        elif kind == "key":
            text = f"a key of {text}"
        elif kind == "graph":
            text = f"the graph of {text}"
        elif kind == "saved":
            text = f"{text}: {name}"
        elif kind == "local":
            text = f"local variable {name}, kept by {text}"
        elif kind == "traceback":
            text = f"the traceback of {text} ({name})"
        elif kind == "inside":
            text = f"{text} (inside a {name})"
    return text


# what users ask
def _describe_origin(accounts: Accounts | None, storage: Storage) -> str:
    known = None if accounts is None else accounts.large.get(storage.pointer)
    return "" if known is None else f", made at {place_of(known[1], known[2])}"


def _describe_holders(search: _Search, target: int) -> list[str]:
    found = search.roots(target)
    if not found:
        return [f"  held by {search.without_root(target)}"]
    out = [f"  held by {text}" for text in found[:_SHOWN]]
    return out + ([f"  and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])


def of_tensor(tensor: Any, accounts: Accounts | None = None) -> str:
    """Who holds a tensor; for one on a GPU, who holds its memory, views included."""
    storage = getattr(tensor._array, "storage", None)
    nbytes = tensor._array.nbytes if storage is None else storage.nbytes
    head = f"{tensor.dtype} {tuple(tensor.shape)} on {tensor.device}, {size(nbytes)}"
    target = tensor if storage is None else storage
    if storage is not None:
        head += _describe_origin(accounts, storage)
    return "\n".join([head, *_describe_holders(_Search([target]), id(target))])


def storages_of(index: int) -> list[Storage]:
    """The storages of a GPU that own memory, the largest first."""
    owners = [o for o in gc.get_objects() if isinstance(o, Storage) and hasattr(type(o), "__del__")]  # others only know an address
    return sorted([o for o in owners if (o.device.index or 0) == index], key=lambda s: -s.nbytes)


def of_storages(accounts: Accounts, storages: list[Storage]) -> str:
    """Who holds each of these storages."""
    heads = [f"{size(s.nbytes)}{_describe_origin(accounts, s)}" for s in storages]
    search = _Search(storages)
    out: list[str] = []
    for head, storage in zip(heads, storages, strict=True):
        out += [head, *_describe_holders(search, id(storage))]
    return "\n".join(out)


def of_largest(accounts: Accounts, most: int) -> str:
    """Who holds the largest tensors of a GPU."""
    storages = storages_of(accounts.index)
    out = [f"cuda:{accounts.index}: {len(storages)} allocations of {size(sum([s.nbytes for s in storages]))} live"]
    left = len(storages) - most
    ending = [f"and {left} smaller ones of {size(sum([s.nbytes for s in storages[most:]]))}"] if left > 0 else []
    del storages[most:]
    return "\n".join([*out, of_storages(accounts, storages), *ending])
