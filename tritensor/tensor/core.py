"""Tensor: an array with a place in the graph. The class and its own attributes; ops and functions attach to it by `function`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tritensor import dispatch, random
from tritensor.autograd import engine
from tritensor.autograd import node as nodes
from tritensor.autograd.hooks import Handle, Hooks, forget_grad, hooks_of, keep_grad
from tritensor.autograd.node import Node, Severed, Version, version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.ground import dtypes
from tritensor.ground.device import as_device, device
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import GradError, MetaError
from tritensor.ground.naming.type_names import named
from tritensor.ground.strides import as_format, contiguous_format, contiguous_strides, is_in_format
from tritensor.ground.thread_state import here, leave_path
from tritensor.ground.transforms import VMAP, WrappedArray, transform
from tritensor.ops.array import Array, CudaArray, device_of, element_strides, empty, from_host, is_contiguous, layout_of
from tritensor.ops.lazy_array import LazyArray, leave_before_change, leave_before_move
from tritensor.ops.strided_array import MetaArray, StridedArray
from tritensor.ops.table import Op, sized_dim
from tritensor.tensor.host_values import HostValues, is_instance, new_instance
from tritensor.tensor.rare_attributes import Extra as Extra
from tritensor.tensor.rare_attributes import ensure_extra as ensure_extra
from tritensor.tensor.rare_attributes import hooks_set, live_views
from tritensor.tensor.size import Size, new_size

if TYPE_CHECKING:
    from tritensor.tensor.methods import Methods  # a stub: what the files of functions/ attach at run time
else:
    Methods = object

_object_new = object.__new__

Step = tuple[Op, dict[str, Any], tuple[Any, ...]]  # from a base to its view: the op, its attributes, ((shape, dtype),) of what it took


@named("torch")
class Tensor(HostValues, Methods):
    """An n-dimensional array on a device, differentiable.

    `Tensor(4, 3)` is uninitialised float32 of that shape, `Tensor([1, 2])` holds those values as float32; prefer
    `tensor(data)`, `empty(shape)`. Slots for library code, with an underscore so that a subclass and a
    program's own attributes may have any name: `_array` (numpy.ndarray, CudaArray or MetaArray), `_node` (where it hangs in the graph; None for a leaf),
    `_tracked` (requires_grad without its checks), `_version_counter`, `_extra`, `_view_path` (of a view the tensor that it is a view of, then the steps
    from there; else None), `_layout` (how the array lies, once somebody has asked: see dispatch/plans.py; another array comes by `_set_array`).
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_extra", "_grad", "_layout", "_node", "_tracked", "_version_counter", "_view_path")
    __array_priority__ = 1000
    _heading = ""  # what a subclass prints before the values
    _backward_hooks = property(hooks_set)

    _array: Array
    _node: Node | None
    _tracked: bool
    _grad: Tensor | None
    _version_counter: Version | None
    _extra: Extra | None
    _view_path: tuple[Any, ...] | None
    _layout: Any

    def __new__(cls, *data: Any, device: Any = None) -> Tensor:  # no __init__: a subclass's may return what as_subclass gives
        # Tensor(3) is a size, Tensor([3]) values: PyTorch's legacy constructor tells them apart by type alone.
        if len(data) == 1 and not isinstance(data[0], int | np.integer):
            given = data[0]
            # A Size is a shape even though it is a sequence of numbers: Tensor(x.shape) is uninitialised.
            if isinstance(given, Size):
                return new_instance(cls, empty(tuple(given), dtypes.default_float().numpy, as_device(device)))
            values = given._array if isinstance(given, Tensor) else None
            return new_instance(
                cls, values if values is not None else from_host(np.array(given, dtypes.default_float().numpy), as_device(device))
            )
        if not all(isinstance(n, int | np.integer) and n >= 0 for n in data):
            raise TypeError(f"Tensor: {data} is no shape; give sizes as in Tensor(4, 3), or use tensor(values)")
        shape = tuple(int(n) for n in data) if data else (0,)
        return new_instance(cls, empty(shape, dtypes.default_float().numpy, as_device(device)))

    def _set_array(self, array: Any) -> None:
        """Let this tensor look at another array."""
        leave_path()  # what was passed over reads the array of now
        self._array, self._layout = array, None
        if type(array) is LazyArray:
            array.shown_by(self)

    @staticmethod
    def wrap(array: Array) -> Tensor:
        """A tensor on an existing array, memory shared."""
        return new_tensor(array)

    # -- what it is
    @property
    def shape(self) -> Size:
        """The size of each dimension, a tuple."""
        layout = self._layout
        if layout is None:
            layout = self._layout = layout_of(self._array)  # which keys of plans ask, too
            if layout is None:
                return new_size(Size, self._array.shape)
        found: Size = layout.size
        if found is None:
            found = layout.size = new_size(Size, layout.shape)
        return found

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        shape = self.shape
        if dim is None:
            return shape
        if not -len(shape) <= dim < len(shape):
            raise IndexError(f"size: dim {dim} is out of range for shape {shape}")
        return shape[dim]

    def dim(self) -> int:
        """How many dimensions there are."""
        return len(self._array.shape)

    ndim = property(dim)
    ndimension = dim

    def numel(self) -> int:
        """How many elements there are."""
        return self._array.size

    nelement = numel

    @property
    def dtype(self) -> DType:
        """The type of the elements, such as `tritensor.float32`."""
        return dtypes.of(self._array.dtype)

    @property
    def device(self) -> device:
        """Where the elements lie: `cpu`, or `cuda:0`."""
        return device_of(self._array)

    @property
    def is_cuda(self) -> bool:
        """Whether the elements lie on a GPU, or on the emulated one."""
        return isinstance(self._array, CudaArray) or (type(self._array) in (WrappedArray, LazyArray) and self._array.device.type == "cuda")

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._array.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._array.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    def is_floating_point(self) -> bool:
        """Whether the elements are floating point numbers."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements, or one of them."""
        array = self._array
        strides = contiguous_strides(array.shape) if 0 in array.shape else element_strides(array)  # numpy says 0 of what has no elements
        return strides if dim is None else strides[sized_dim("stride", dim, len(strides))]

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether the elements lie without gaps in C order, or in another memory format's order."""
        if memory_format is contiguous_format:
            return is_contiguous(self._array)
        wanted = as_format("is_contiguous", memory_format, contiguous_format)
        return wanted.order is not None and is_in_format(self._array.shape, element_strides(self._array), wanted)

    def data_ptr(self) -> int:
        """Address of the first element; 0 of a tensor without memory of its own, whose class computes by __torch_dispatch__."""
        if is_instance(self):
            memory = self._array.value._array  # type: ignore[union-attr]
            return 0 if isinstance(memory, MetaArray) else new_tensor(memory).data_ptr()
        return self._array.data_ptr() if isinstance(self._array, StridedArray) else self._array.ctypes.data

    def __len__(self) -> int:
        if not self._array.shape:
            raise TypeError("len: a 0-d tensor has no length; use .item() for its value")
        return self._array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.shape:
            raise TypeError("iter: iteration over a 0-d tensor; use .item() for its value")
        # unbind marks its views as parts of one call, so that a write to one of them is refused as in PyTorch.
        return iter(self.unbind(0))

    __hash__ = object.__hash__

    # -- the graph
    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded for `backward`. Of a leaf it may be set."""
        return self._tracked

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask (or stop asking) for gradients of a leaf; returns self."""
        severed = type(self._node) is Severed
        if self._node is not None and not severed and not requires_grad:
            raise GradError("requires_grad: only a leaf can stop requiring grad; use detach() for a tensor that an op computed")
        if requires_grad and self.dtype.kind not in ("float", "complex"):
            raise GradError(f"requires_grad: {self.dtype.name} has no gradient; convert with .float() first")
        if severed:
            if requires_grad:
                self._node = None  # a leaf of its own from now on
            return self  # else it has no say: a view requires grad where its base does
        if self._tracked is not bool(requires_grad):
            leave_before_change(self)
        self._tracked = bool(requires_grad)
        if self._extra is not None and self._extra.views is not None:
            # Views taken outside the graph have no node; they require grad where their base does.
            self._extra.views.follow(self._tracked)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward has accumulated, of this tensor's shape, dtype and device; None before the first."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad: {type(value).__name__} is not a tensor; assign a tensor or None")
            if value is self:
                raise GradError("grad: a tensor cannot be its own gradient; assign a clone() of it, or None")
            a, b = value._array, self._array  # building Size and DType objects would cost more than the check
            alike = type(a) is type(b) or any([type(x) is LazyArray or getattr(x, "instance", None) is not None for x in (a, b)])
            if a.shape != b.shape or a.dtype != b.dtype or not alike or value.device != self.device:
                raise GradError(
                    f"grad: {value.dtype.name} {tuple(a.shape)} on {value.device} for a tensor of {self.dtype.name} {tuple(b.shape)} "
                    f"on {self.device}; a gradient has its tensor's shape, dtype and device, make it so"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        """`del x.grad`: None again."""
        self._grad = None

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it: its gradient comes to `grad`."""
        return self._node is None or type(self._node) is Severed

    @property
    def grad_fn(self) -> Any:
        """The node of the graph that made it, whose name is that of the operation; None for a leaf."""
        return nodes.next_function(self._node)[0]

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` it is."""
        return nodes.next_function(self._node)[1]

    @property
    def _version(self) -> int:
        return 0 if self._version_counter is None else self._version_counter.value

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Add the gradient of this tensor to `.grad` of the leaves it was computed from.

        Args:
            gradient: gradient to start from, of this tensor's shape; may be left out for one element.
            retain_graph: keep the graph for another backward; defaults to `create_graph`.
            create_graph: record the computation, so that gradients can be differentiated.
            inputs: accumulate into these tensors only.

        Raises:
            GradError: no graph, a freed graph, a saved tensor overwritten, or no gradient for a tensor that is no scalar.

        >>> x = tt.tensor([1.0, 2.0], requires_grad=True)
        >>> (x**2).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        wanted = None if inputs is None else engine.tensors_of("backward", "inputs", inputs)
        if gradient is not None and not isinstance(gradient, Tensor):
            raise TypeError(f"backward: gradient is a {type(gradient).__name__}; give a tensor of this one's shape, or None")
        keep = create_graph if retain_graph is None else retain_graph
        engine.backward([self], [gradient], keep_graph=keep, create_graph=create_graph, inputs=wanted)

    def detach(self) -> Tensor:
        """The same memory outside the graph; in-place writes are seen, and counted, on both sides."""
        array = self._array
        t = new_tensor(array) if type(array) is not WrappedArray else nodes.make_tensor(transform.current.detached(array))
        t._version_counter = version_of(self)  # of both: a write through the detached tensor must invalidate what the graph has saved
        if here.noting is not None:
            here.noting.note_alias(Tensor.detach, self, t)
        return t

    def detach_(self) -> Tensor:
        """Cut this tensor itself off its graph; a backward through what has saved it raises GradError from then on.

        Raises GradError for a view, which would come back with the next write to its base.
        """
        if self._view_path is not None:
            raise GradError("detach_: a view stays in the graph of its base; use detach()")
        if self._extra is not None and self._extra.views is not None:
            self._extra.views.part()
        # What nodes have saved of this tensor's memory is copied or given up before the tensor leaves the graph.
        copy_for_borrowers(self)
        leave_before_change(self)
        self._set_node(None)
        nodes.latest.stamp = nodes.next_sequence()  # who has saved this tensor is to look at it again
        return self

    @property
    def data(self) -> Tensor:
        """The same memory outside the graph and without a tangent, writes not counted: autograd does not notice them."""
        array = self._array
        if type(array) is not WrappedArray:
            return new_tensor(array)
        if array.level.kind == VMAP:  # only the tangent and the graph are dropped: the batch dimension belongs to the value
            return new_tensor(WrappedArray(array.level, array.value.data, array.batched))
        if array.instance is not None:
            return nodes.make_tensor(array)  # type: ignore[no-any-return]
        return new_tensor(array if array.tangent is None else WrappedArray(array.level, array.value))

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"data: {type(value).__name__} is not a tensor; wrap it with tensor(...)")
        if self._tracked and value.dtype.kind not in ("float", "float8", "complex"):
            raise GradError(
                f"data: {value.dtype.name} for a tensor that requires grad, which must be float or complex; requires_grad_(False) first"
            )
        if type(value._array) is not type(self._array) and MetaArray in (type(value._array), type(self._array)):
            raise MetaError(
                f"data: the tensor is on {self.device}, its new data on {value.device}; who holds it would see values come or go, so make a new tensor "
                "of it, or use module.to_empty and load_state_dict(..., assign=True)"
            )
        leave_before_move(self)
        self._set_array(value._array)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Handle:
        """Call `hook(grad)` whenever this tensor's gradient is computed; what it returns replaces the gradient."""
        if not self._tracked:
            raise GradError("register_hook: the tensor does not require grad, so no gradient will come; set its requires_grad=True first")
        owner = self._node if self._node is not None else ensure_extra(self)
        return Handle(hooks_of(owner).tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call `hook(tensor)` as soon as backward has added to this leaf's `.grad`, before it goes on to what lies below.

        Nothing is recorded there, unless create_graph=True: an optimizer's step can be taken and `.grad` be freed parameter by parameter.
        """
        if not self.is_leaf or not self._tracked:
            raise GradError("register_post_accumulate_grad_hook: only a leaf that requires grad accumulates; use register_hook on others")
        extra = ensure_extra(self)
        if extra.post_hooks is None:
            extra.post_hooks = {}
        Hooks.post = True  # an engine that has never seen such a hook does not look for them at every leaf
        return Handle(extra.post_hooks, hook)

    def _leaf_hooks(self) -> Hooks:
        """The hooks on this leaf's gradient (library code asks for them)."""
        return hooks_of(ensure_extra(self))

    def retain_grad(self) -> None:
        """Keep `.grad` of a tensor that is not a leaf: what is left of its gradient after all hooks. In-place writes do not end it."""
        if not self._tracked:
            raise GradError("retain_grad: the tensor does not require grad, so no gradient will come; set its requires_grad=True first")
        if self.is_leaf or ensure_extra(self).retains:
            return
        ensure_extra(self).retains = True
        keep_grad(self._node, self)

    def _set_node(self, node: Node | None) -> None:
        """Give this tensor another place in the graph: retain_grad goes there with it, the hooks stay with what it was."""
        if self._extra is not None and self._extra.retains:  # which belongs to the tensor, not to the node that made it before
            forget_grad(self._node, self)
            if node is not None:
                keep_grad(node, self)
        self._node = node
        self._tracked = node is not None

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called, so that a tensor that is no leaf keeps its gradient."""
        return self._extra is not None and self._extra.retains

    def _record_view_of(self, base: Tensor, step: Step, recording: bool) -> None:
        """Note the way from the base, so that in-place writes reach both graphs (dispatch calls this)."""
        above, extra = base._view_path, base._extra
        # A view of a view that must not be written must not be written either.
        origin = "" if above is None or extra is None else extra.origin
        if above is None:
            root, self._view_path = base, (base, step)
        else:
            root, self._view_path = above[0], (*above, step)
            extra = root._extra
        if origin or not recording:
            self._extra = Extra()  # nobody else knows the view yet
            self._extra.origin = origin or "no_grad"
            # Under no_grad the view has no node, and still requires grad as PyTorch's does: Severed says so.
            if not recording and base._tracked and dtypes.has_gradient(self._array.dtype):
                self._node, self._tracked = Severed(), True
        fresh = (live_views(root) if extra is None or extra.views is None else extra.views).fresh
        fresh[id(self)] = weakref.ref(self)
        if (n := len(fresh)) >= 32 and n & (n - 1) == 0:  # forget the dead at each doubling
            for key in [key for key, r in tuple(fresh.items()) if r() is None]:
                fresh.pop(key, None)

    @property
    def _base(self) -> Tensor | None:
        return None if self._view_path is None else self._view_path[0]


def new_tensor(array: Array) -> Tensor:
    """A leaf on an array: the bare constructor that dispatch calls for every result."""
    t = _object_new(Tensor)
    t._array = array
    t._node = t._grad = t._version_counter = t._extra = t._view_path = t._layout = None
    t._tracked = False
    if type(array) is LazyArray:
        array.shown_by(t)
    return t


def new_output(array: Array, node: Node) -> Tensor:
    """A tensor that hangs at a node."""
    t = new_tensor(array)
    t._node = node
    t._tracked = True
    return t


dispatch.install(Tensor, new_tensor)
random.install(new_tensor)
nodes.make_tensor = new_tensor  # type: ignore[assignment]
nodes.make_output = new_output  # type: ignore[assignment]
