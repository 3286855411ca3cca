"""PyTorch's module of ops that programs register by themselves: custom_op and triton_op over autograd.Function; no tracer is here to be told of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, TypeVar

from tritensor.autograd.function import Function
from tritensor.autograd.graph import increment_version
from tritensor.autograd.modes import is_grad_enabled
from tritensor.ground.errors import DeviceError, GradError, RegistrationError
from tritensor.ops.table.lookup import ops, registry
from tritensor.tensor.core import Tensor

T = TypeVar("T")
__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel", "triton_op", "wrap_triton"]
_registered: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """A function of tensors under a name `namespace::name`, found again as `ops.namespace.name`: one kernel for each kind of device, and a gradient if it
    is given one. Called with tensors that require grad it leaves one node in the graph, whatever its function does inside."""

    def __init__(self, name: str, function: Callable[..., Any], mutates: tuple[str, ...] | str, devices: tuple[str, ...] | None) -> None:
        self._qualname, self._namespace, self._name = name, *name.split("::")
        self._signature = inspect.signature(function)
        self._by_place = sum(p.kind is not p.KEYWORD_ONLY for p in self._signature.parameters.values())
        self._mutates = mutates
        self._kernels: dict[str | None, Callable[..., Any]] = dict.fromkeys(devices or (None,), function)
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self.__name__, self.__doc__, self.__wrapped__ = self._name, function.__doc__, function
        self._node: type[Function] = type(self._name, (_Call,), {"of": self})  # of its own, so that grad_fn bears the op's name

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    @property
    def default(self) -> CustomOpDef:
        """The op itself, which has one overload."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()  # a gradient counts the inputs by place, those left out among them
        tensors = [t for value in bound.arguments.values() for t in _tensors(value)]
        values = tuple(bound.arguments.values())
        if is_grad_enabled() and any(t.requires_grad for t in tensors):
            sizes = tuple([len(v) if isinstance(v, list | tuple) else None for v in values])
            out = self._node.apply(sizes, *[v for value in values for v in (value if isinstance(value, list | tuple) else (value,))])
        else:
            out = self._run(values)
        written = bound.arguments if self._mutates == "unknown" else self._mutates
        # A kernel writes without our knowing: saved tensors must not pass for untouched.
        increment_version([t for name in written for t in _tensors(bound.arguments[name])])
        return out

    def _run(self, values: tuple[Any, ...]) -> Any:
        """The kernel of the device that the first tensor is on."""
        where = next((t.device.type for value in values for t in _tensors(value)), None)
        kernel = self._kernels.get(where) or self._kernels.get(None)  # None: of an op that is for every device
        if kernel is None:
            raise DeviceError(
                f"{self._qualname}: it has no kernel for {where} tensors, only for {', '.join(map(str, self._kernels))}; "
                f"give it one: @{self._name}.register_kernel({where!r})"
            )
        call = inspect.BoundArguments(self._signature, dict(zip(self._signature.parameters, values, strict=True)))  # type: ignore[arg-type]
        return kernel(*call.args, **call.kwargs)

    def register_kernel(self, device_types: str | Iterable[str] | None, fn: Callable[..., Any] | None = None, /) -> Any:
        """Take another function for tensors on these kinds of devices. May decorate it."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for one in (device_types,) if isinstance(device_types, str | None) else device_types:
                self._kernels[one] = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What PyTorch's tracer asks for shapes, which nothing here does: the function is given back."""
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """Give it a gradient: `backward(ctx, *gradients)` returns one for each input, `setup_context(ctx, inputs, output)` keeps what it needs."""
        self._backward, self._setup = backward, setup_context


class _Call(Function):
    """The node that a call of a custom op leaves; each op has a class of its own. Lists of tensors are its inputs one by one: `sizes` says how many of
    them an argument has, None for one that is no list."""

    of: CustomOpDef

    @classmethod
    def forward(cls, ctx: Any, sizes: tuple[int | None, ...], *flat: Any) -> Any:  # type: ignore[override]
        ctx.sizes_of_inputs, left = sizes, iter(flat)  # apply sees tensors, and looks into no lists
        values = tuple([next(left) if n is None else [next(left) for _ in range(n)] for n in sizes])
        out = cls.of._run(values)
        if cls.of._setup is not None:
            by_name = dict(list(zip(cls.of._signature.parameters, values, strict=True))[cls.of._by_place :])
            more = {"keyword_only_inputs": by_name} if by_name else {}
            cls.of._setup(ctx=ctx, inputs=values[: cls.of._by_place], output=out, **more)
        return out

    @classmethod
    def backward(cls, ctx: Any, *gradients: Any) -> Any:  # type: ignore[override]
        op = cls.of
        if op._backward is None:
            raise GradError(
                f"{op._qualname}: backward came to it, and it was given no gradient; "
                f"{op._name}.register_autograd(backward, setup_context=...) gives it one"
            )
        found = op._backward(ctx, *gradients)
        found = found if isinstance(found, tuple) else (found,)  # one input: PyTorch takes its gradient without a tuple
        if len(found) != op._by_place:
            raise GradError(
                f"{op._qualname}: its backward returned {len(found)} gradients for {op._by_place} inputs; None stands for one without"
            )
        out: list[Any] = [None]
        for gradient, n in zip((*found, *[None] * (len(ctx.sizes_of_inputs) - len(found))), ctx.sizes_of_inputs, strict=True):
            out += [gradient] if n is None else [None] * n if gradient is None else list(gradient)
        return tuple(out)


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in an argument: itself, or those in a list."""
    if isinstance(value, Tensor):
        return [value]
    return [t for t in value if isinstance(t, Tensor)] if isinstance(value, list | tuple) else []


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str], device_types: str | Iterable[str] | None = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Register a function of tensors as the op `namespace::name`; may decorate it. `schema` and `tags` tell PyTorch's tracer something, and are not read:
    the function's own signature counts.

    Args:
        mutates_args: the parameters whose tensors it writes to, or "unknown". device_types: the kinds of devices that it is for, None for all.
    Raises RegistrationError for a name without a namespace and for a parameter that it has not.
    """
    if name.count("::") != 1 or not all(part.isidentifier() for part in name.split("::")):
        raise RegistrationError(f"custom_op: {name!r} is no name of an op; write it as 'namespace::name'")

    def register(function: Callable[..., Any]) -> CustomOpDef:
        mutates = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)
        parameters = inspect.signature(function).parameters
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
            raise RegistrationError(
                f"custom_op: {name}: the function takes any arguments (*args, **kwargs); an op has parameters with names"
            )
        unknown = [] if mutates == "unknown" else [m for m in mutates if m not in parameters]
        if unknown:
            raise RegistrationError(
                f"custom_op: {name}: mutates_args has {unknown[0]!r}, which is no parameter; it takes {inspect.signature(function)}"
            )
        devices = (device_types,) if isinstance(device_types, str) else tuple(device_types) if device_types is not None else None
        made = _registered[name] = CustomOpDef(name, function, mutates, devices)
        _show(made)
        return made

    return register if fn is None else register(fn)


def triton_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None) -> Any:
    """custom_op() of a function that launches Triton kernels, which a tracer could look into."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def _show(made: CustomOpDef) -> None:
    """Let `ops.namespace.name` find it."""
    space = ops.__dict__.get(made._namespace)  # past __getattr__, which would look for an op of that name
    if not isinstance(space, SimpleNamespace):
        if made._namespace in registry.names() or made._namespace == "aten":
            raise RegistrationError(f"custom_op: {made._qualname}: ops.{made._namespace} is an op of this library; take another namespace")
        space = ops.__dict__[made._namespace] = SimpleNamespace()
    setattr(space, made._name, made)


def _op(op: str | CustomOpDef) -> CustomOpDef:
    found = _registered.get(op) if isinstance(op, str) else op
    if not isinstance(found, CustomOpDef):
        raise RegistrationError(f"library: no custom op is called {op!r}; registered are {', '.join(sorted(_registered)) or 'none'}")
    return found


def register_kernel(
    op: str | CustomOpDef, device_types: str | Iterable[str] | None, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """CustomOpDef.register_kernel of an op, or of a name."""
    return _op(op).register_kernel(device_types, func)


def register_fake(
    op: str | CustomOpDef, func: Callable[..., Any] | None = None, /, *, lib: Any = None, allow_override: bool = False
) -> Any:
    """CustomOpDef.register_fake of an op, or of a name."""
    return _op(op).register_fake if func is None else _op(op).register_fake(func)


def register_autograd(
    op: str | CustomOpDef, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """CustomOpDef.register_autograd of an op, or of a name."""
    _op(op).register_autograd(backward, setup_context=setup_context)


def wrap_triton(triton_kernel: T, /) -> T:
    """The kernel itself: nothing is traced that would have to be told of its launch. Raises RuntimeError for what is no Triton kernel, as PyTorch does."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    if not isinstance(triton_kernel, JITFunction | Autotuner):
        raise RuntimeError(
            f"library.wrap_triton: {type(triton_kernel).__name__} is not a Triton kernel; give a function decorated with triton.jit or triton.autotune"
        )
    return triton_kernel
