"""Parameter and Buffer: the tensors that a Module registers when they are assigned to it, also before their shape is known."""

from __future__ import annotations

from typing import Any

from tritensor.ground.device import as_device
from tritensor.ground.dtypes import as_dtype, default_float
from tritensor.ground.naming.type_names import named, own_name
from tritensor.ops.array import empty
from tritensor.tensor.copying import copy_compact
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.host_values import new_instance
from tritensor.tensor.overriding.protocol import PLAIN, disabled_torch_function, dispatches, takes_over
from tritensor.tensor.parsing.data import as_tensor


class _ParameterMeta(type):
    """The class of Parameter. Once a program has a parameter of another class of tensors, isinstance finds that as well."""


@named("torch.nn.parameter")
class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that a Module counts among its parameters. `Parameter(data=None, requires_grad=True)`.

    Shares memory with `data`, which is floating unless requires_grad=False. Results of ops on it are plain Tensors.
    Raises GradError for data of another type.
    """

    _heading = "Parameter containing:\n"
    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is not None and (takes_over(data) or dispatches(type(data))):
            return _as_parameter(data, requires_grad)
        made = _share_memory(cls, data)
        if requires_grad:
            made.requires_grad_()
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        found = self._deepcopy_with(memo, lambda array, _: copy_compact(array))  # a parameter is the memory of its own
        found.grad = None  # the copy of a model starts without gradients
        return found


@named("torch.nn.parameter")
class Buffer(Tensor):
    """A tensor that a Module counts among its buffers: state that is saved and moved, and not learned.

    `Buffer(data=None, persistent=True)`; persistent=False keeps it out of the state_dict. It is a leaf, which requires grad where data does.
    """

    __torch_function__ = disabled_torch_function
    prints_plain = True  # PyTorch's prints as a plain tensor, without its class

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made = _share_memory(cls, data)
        made._tracked = data is not None and data.requires_grad  # assigned, not requires_grad_(): integers are buffers, too
        made.persistent = persistent
        return made


PLAIN.update((Parameter, Buffer))


def _is_parameter(cls: Any, instance: Any) -> bool:
    return type.__instancecheck__(cls, instance) or (
        cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
    )


def _as_parameter(data: Any, requires_grad: bool) -> Any:
    """A tensor of a class of its own as a parameter: a leaf of that class, which a Module registers."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Parameter: detach() of a {type(data).__name__} is a {type(made).__name__}; a class of tensors that is to be a parameter must "
            "answer detach() and requires_grad_() with itself: do so in its __torch_function__"
        )
    made._is_param = True
    _ParameterMeta.__instancecheck__ = _is_parameter  # type: ignore[method-assign]
    return made


def _share_memory(cls: type[Tensor], data: Any) -> Any:
    """A leaf of a class on the memory, and under the write counter, of `data`."""
    if data is not None and not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__}: data is a {type(data).__name__}; give a tensor (tritensor.tensor(...))")
    source = as_tensor([] if data is None else data).detach()
    leaf = new_instance(cls, source._array)
    # one counter: a write through either name must tell a graph that saved the other
    leaf._version_counter = source._version_counter
    return leaf


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter of `shape` whose values are not set yet: layers make theirs with it and then initialise them."""
    kind = default_float() if dtype is None else as_dtype(dtype)
    return Parameter(Tensor.wrap(empty(shape, kind.numpy, as_device(device))))  # not zeros: whoever asks fills it at once


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """What of a layer's keyword arguments says how its parameters are made: device, dtype and memory_format, also inside `factory_kwargs`.

    Raises TypeError for other keywords, and for one that is given in both.
    """
    known, given = ("device", "dtype", "memory_format"), {} if kwargs is None else kwargs
    others = [name for name in given if name not in (*known, "factory_kwargs")]
    if others:
        raise TypeError(f"factory_kwargs: unexpected kwargs {', '.join(others)}; give {', '.join(known)} or factory_kwargs")
    found = dict(given.get("factory_kwargs", {}))  # a copy: the caller's dict is his
    for name in known:
        if name in given and name in found:
            raise TypeError(f"factory_kwargs: {name} specified twice, in **kwargs and in factory_kwargs; give one of them")
        if name in given:
            found[name] = given[name]
    return found


_memory: Any = Tensor.__dict__["_array"]  # where a tensor keeps its array: an uninitialized one lets nobody have it


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet: it has a type and a device, can be moved and cast, and `materialize(shape)` makes it whole.

    Anything else asked of it raises, ValueError for an op and RuntimeError for its shape.
    """

    __slots__ = ()
    cls_to_become: Any = None
    _set_array: Any  # Tensor's

    @property
    def _array(self) -> Any:
        """Raises ValueError: there are no elements yet."""
        what = type(self).__name__
        raise ValueError(
            f"Attempted to use an uninitialized parameter: the shape of this {what} is not known yet; call the lazy module's forward with a "
            "batch first, or materialize(shape)"
        )

    @_array.setter
    def _array(self, value: Any) -> None:
        _memory.__set__(self, value)

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of `shape`, its values not set, on the device and of the type that it was made for."""
        here = self._empty_tensor()
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = here.dtype if dtype is None else as_dtype(dtype)
        self._set_array(empty(sizes, kind.numpy, here.device if device is None else as_device(device)))
        self.__class__ = self.cls_to_become

    def _empty_tensor(self) -> Tensor:
        """An empty tensor of this one's type and device."""
        return new_tensor(_memory.__get__(self))

    def _make_like(self, held: Tensor) -> Any:
        """Another uninitialized one of held's type and device, itself when they are its own."""
        here = self._empty_tensor()
        if here.dtype == held.dtype and here.device == held.device:  # a module's `_apply` compares by identity whether anything moved
            return self
        return type(self)(self.requires_grad, held.device, held.dtype)  # type: ignore[attr-defined, call-arg]

    def to(self, *args: Any, **settings: Any) -> Any:
        return self._make_like(self._empty_tensor().to(*args, **settings))

    def cuda(self, *args: Any, **settings: Any) -> Any:
        return self._make_like(self._empty_tensor().cuda(*args, **settings))

    def cpu(self, *args: Any, **settings: Any) -> Any:
        return self._make_like(self._empty_tensor().cpu(*args, **settings))

    def detach(self) -> Any:
        return self

    @property
    def data(self) -> Any:
        return self

    @data.setter
    def data(self, value: Any) -> None:
        if isinstance(value, UninitializedTensorMixin):
            self._set_array(_memory.__get__(value))
        else:
            self._set_array(value._array)
            self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer: it is known when forward has seen a batch; call forward first. In "
            "load_state_dict: the state_dict comes from a lazy module that had not run, the module here has"
        )

    def size(self, dim: Any = None) -> Any:
        return self._empty_tensor().size(dim)

    @property
    def dtype(self) -> Any:
        return self._empty_tensor().dtype

    @property
    def device(self) -> Any:
        return self._empty_tensor().device

    @property
    def is_cuda(self) -> bool:
        return self._empty_tensor().is_cuda

    @property
    def is_meta(self) -> bool:
        return self._empty_tensor().is_meta

    def share_memory_(self) -> Any:
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call forward first")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        held = self._empty_tensor()
        return own_name(type(self)), (self.requires_grad, str(held.device), held.dtype)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:  # tied parameters stay tied in the copy
            held = self._empty_tensor()
            memo[id(self)] = type(self)(self.requires_grad, held.device, held.dtype)  # type: ignore[attr-defined, call-arg]
        return memo[id(self)]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


@named("torch.nn.parameter")
class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape the first batch will tell: `UninitializedParameter(requires_grad=True, device=None, dtype=None)`."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return super().__new__(cls, _new_empty(device, dtype), requires_grad)


@named("torch.nn.parameter")
class UninitializedBuffer(UninitializedTensorMixin, Buffer):  # type: ignore[misc]
    """A buffer whose shape the first batch will tell: `UninitializedBuffer(requires_grad=False, device=None, dtype=None, persistent=True)`."""

    cls_to_become = Buffer

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> Any:
        made = super().__new__(cls, _new_empty(device, dtype), persistent=persistent)
        if requires_grad:
            made.requires_grad_()
        return made


def _new_empty(device: Any, dtype: Any) -> Tensor:
    return new_tensor(empty((0,), (default_float() if dtype is None else as_dtype(dtype)).numpy, as_device(device)))
