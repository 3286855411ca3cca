"""Publishing a function: `@function` makes it `tritensor.<name>` and a method of Tensor, with its in-place and `out=` forms."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import next_sequence
from tritensor.dispatch.plans.door_code import CallAgain, copy_function, open_door
from tritensor.dispatch.plans.doors import Door
from tritensor.ground.call_site import wrapper
from tritensor.ground.device import as_device
from tritensor.ground.dtypes import as_dtype
from tritensor.ground.errors import DeviceError, DTypeError, NoValuesError, ShapeError
from tritensor.ground.transforms import transform
from tritensor.ops.array import same_memory
from tritensor.tensor.aliasing.inplace import compute_into, overwrite, write_out
from tritensor.tensor.aliasing.overlaps import refuse_overlap, refuse_shared_out
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.arguments import PublicSignature, bool_parameters, pop_first_argument, repair_arguments, require_bools
from tritensor.tensor.public_api.layout import check_layout

public: dict[str, Callable[..., Any]] = {}
namespaces: dict[str, dict[str, Callable[..., Any]]] = {}  # below tritensor: {"fft": {"fft": ..., "rfft": ...}}
Scalar = bool | int | float | complex
# In-place forms that PyTorch has as functions too: `torch.relu_(x)`, but x.erfinv_() alone. No rule says which.
INPLACE_FUNCTIONS = frozenset((
    "abs_", "acos_", "acosh_", "addmv_", "alpha_dropout_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "asin_",
    "asinh_", "atan_", "atanh_", "ceil_", "celu_", "clamp_", "clamp_max_", "clamp_min_", "clip_", "conj_physical_", "cos_", "cosh_",
    "deg2rad_", "dropout_", "embedding_renorm_", "erf_", "erfc_", "exp2_", "exp_", "expm1_", "feature_alpha_dropout_", "feature_dropout_",
    "fix_", "floor_", "frac_", "gcd_", "i0_", "index_put_", "lcm_", "ldexp_", "log10_", "log1p_", "log2_", "log_", "logit_", "nan_to_num_",
    "neg_", "negative_", "rad2deg_", "reciprocal_", "relu_", "round_", "rrelu_", "rsqrt_", "selu_", "sigmoid_", "sin_", "sinc_", "sinh_",
    "sqrt_", "square_", "tan_", "tanh_", "threshold_", "trunc_", "xlogy_",
))  # fmt: skip


def function(
    f: Callable[..., Any] | None = None, *, method: bool = True, free: bool = True, inplace: bool | Callable[..., tuple[Any, ...]] = False,
    out: bool | str = False, names: Sequence[str] = (), also: Mapping[str, str] | None = None, maker: bool = False, namespace: str = "",
    bare: bool = False,
) -> Any:  # fmt: skip
    """Publish a function `f(x, ...)`: as `tritensor.<name>`, and as a method of Tensor.

    Args:
        method: attach to Tensor.
        free: publish as a function too (`x.cuda()` is a method only).
        inplace: also attach `x.<name>_(...)`, which writes the result over x, and publish those of WRITING. Where an op has the function's
            name it computes into x's memory directly; a function here makes that op's inputs of the arguments, which are the inputs otherwise.
        out: accept `out=`, a tensor that receives the result (resized, with a warning, when its shape differs). "exact": one of the
            result's type that shares no memory with the arguments. "dtype": its type is the `dtype` to compute in;
            "float dtype": but of floats alone.
        names: aliases; the function's own name is always one.
        also: other names of parameters, {name: parameter}; those of `arguments.ALIASES` and `input` go without saying.
        maker: it makes a tensor of given type and device; accept `layout=`, `pin_memory=` and `requires_grad=`; `out=`, too, gives type and device there.
        namespace: publish as `tritensor.<namespace>.<name>` and not as `tritensor.<name>`, and as no method.
        bare: it looks at its arguments itself and is as cheap as a plan: it is published as it is.
    """
    if f is None:
        return functools.partial(
            function, method=method, free=free, inplace=inplace, out=out, names=names, also=also, maker=maker, namespace=namespace, bare=bare,
        )  # fmt: skip
    if also is not None:
        f.also = also  # type: ignore[attr-defined]
    call = f if bare else _wrap_maker(f, bool(out)) if maker else _wrap_with_out(f, out) if out else checked(f)
    if namespace:
        call.__module__ = f"tritensor.{namespace}"
        namespaces.setdefault(namespace, {}).update(
            {name: call if name == f.__name__ else twin(call, name) for name in (f.__name__, *names)}
        )
        return call
    if free:
        call.__module__ = "tritensor"  # where users and pickle find it
    for name in {f.__name__: None, **dict.fromkeys(names)}:
        own = call if name == f.__name__ else twin(call, name)
        if free:
            public[name] = own
        if method:
            setattr(Tensor, name, twin(own, f"Tensor.{name}") if free else own)
        if inplace:
            write = wrap_in_place(f, name + "_", inplace)
            if method:
                setattr(Tensor, name + "_", write)
            if name + "_" in INPLACE_FUNCTIONS:
                public[name + "_"] = twin(write, name + "_") if method else write
    return call


def twin(f: Callable[..., Any], name: str, module: str = "") -> Callable[..., Any]:
    """Another function object of the same meaning, under another name: `torch.add`, `torch.Tensor.add` and aliases are told apart by programs that take
    functions over (`__torch_function__`). What `reroute` does to one it does to both."""
    made = copy_function(f)  # type: ignore[arg-type]
    made.__name__, made.__qualname__, made.__module__ = name.rpartition(".")[2], name, module or f.__module__
    return made


def rename_function(f: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """A function made for a public name, under which tracebacks and messages know it as well."""
    # Tracebacks show the code object's name: a family made by one factory must not all be called `call`.
    f.__code__ = f.__code__.replace(co_name=name, co_qualname=name)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    return f


def exported(f: Callable[..., Any]) -> Any:
    """Mark a function of nn.functional as public that looks at its arguments itself, because it is called too often for `checked` (tools/exports.py)."""
    return f


def checked(f: Callable[..., Any], name: str = "") -> Any:
    """f with validated arguments: other libraries' names of keywords are accepted, and arguments that do not fit raise one line. Calls that were made before
    go by their plans."""
    shown, flags = name or f.__name__, bool_parameters(f)
    first = min([place for place, _ in flags], default=sys.maxsize)

    @wrapper
    def long(*args: Any, **kwargs: Any) -> Any:
        if flags and (kwargs or len(args) > first):
            require_bools(f, shown, flags, args, kwargs)
        try:
            return f(*args, **kwargs)
        except (TypeError, AttributeError, ValueError, IndexError) as error:
            args, kwargs = repair_arguments(f, shown, args, kwargs, error)
        except NoValuesError as error:
            return transform.current.for_each(f, args, kwargs, error)
        raise CallAgain(args, kwargs)

    return _with_plans(long, f, PublicSignature(f, out=False))


def _with_plans(long: Callable[..., Any], f: Callable[..., Any], signature: inspect.Signature) -> Any:
    """The function that programs call: f's name and documentation, its plans, and behind them the long way."""
    call: Any = functools.update_wrapper(open_door(Door(long, f, f.__name__)), f)
    call.__signature__ = signature
    return call


def reroute(call: Callable[..., Any], around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Let a published wrapper call `around(f)` from now on, for everybody who holds it; not with `out=`. False for what is no wrapper.

    The wrapped function is a closure cell, which is replaced: a call pays nothing for the question whether it was.
    """
    door = _door_of(call)
    code = None if door is None else door.long.__code__
    if door is None or code is None or "f" not in code.co_freevars:
        return False
    cell = dict(zip(code.co_freevars, door.long.__closure__ or (), strict=True))["f"]
    cell.cell_contents = around(cell.cell_contents)
    return True


def _door_of(call: Callable[..., Any]) -> Any:
    """The door that a published function is; None for what is none."""
    names = getattr(getattr(call, "__code__", None), "co_freevars", ())
    return dict(zip(names, call.__closure__ or (), strict=True))["door_"].cell_contents if "door_" in names else None


def _wrap_with_out(f: Callable[..., Any], kind: bool | str) -> Callable[..., Any]:
    name, exact, takes_dtype, flags = f.__name__, kind == "exact", kind in ("dtype", "float dtype"), bool_parameters(f)
    first = min([place for place, _ in flags], default=sys.maxsize)

    @wrapper
    def long(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if flags and (kwargs or len(args) > first):
            require_bools(f, name, flags, args, kwargs)
        try:
            if out is None:
                return f(*args, **kwargs)
            (_refuse_any_overlap if exact else refuse_shared_out)(out, (*args, *kwargs.values()), name)
            if takes_dtype and isinstance(out, Tensor) and not (kind == "float dtype" and args and _is_integral(args[0])):
                kwargs["dtype"] = _dtype_of_out(out, name, kwargs.get("dtype"))
            # out= of the right type and shape takes the result in one pass, without a temporary.
            if not kwargs and isinstance(out, Tensor) and compute_into(name, out, args, name):
                return out
            value = f(*args, **kwargs)
        except (TypeError, AttributeError, ValueError, IndexError) as error:
            args, kwargs = repair_arguments(f, name, args, kwargs, error)
        except NoValuesError as error:
            return transform.current.for_each(f, args, kwargs, error)
        else:
            if exact:
                pairs = [(out, value)] if isinstance(out, Tensor) else zip(out, value, strict=False)
                for into, result in pairs:
                    _require_exact_out(name, into, result)
            return _store_results(out, value, name)
        raise CallAgain(args, kwargs if out is None else {**kwargs, "out": out})

    # Made lazily: the signatures of 600 functions take 7 ms, at every import.
    return _with_plans(long, f, PublicSignature(f, out=True))  # type: ignore[no-any-return]


def _wrap_maker(f: Callable[..., Any], gives_out: bool) -> Callable[..., Any]:
    name = f.__name__
    code = f.__code__
    own = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    pins = "pin_memory" in own

    @wrapper
    def long(*args: Any, out: Any = None, layout: Any = None, pin_memory: bool = False, requires_grad: bool = False, **options: Any) -> Any:
        if layout is not None:
            check_layout(name, layout)
        if out is not None:
            if gives_out:
                _take_options_of_out(name, own, options, out)
            else:
                options["out"] = out  # which f refuses
        if pin_memory and pins:
            options["pin_memory"] = True
        try:
            made = f(*args, **options)
        except (TypeError, AttributeError, ValueError, IndexError) as error:
            args, options = repair_arguments(f, name, args, options, error)
        except NoValuesError as error:
            return transform.current.for_each(f, args, options, error)
        else:
            if out is not None:
                made = write_out(out, made, name)
            elif pin_memory and not pins:
                made = made.pin_memory()
            return made.requires_grad_() if requires_grad else made
        given = {"out": out, "layout": layout, "pin_memory": pin_memory, "requires_grad": requires_grad}
        raise CallAgain(args, {**options, **{n: v for n, v in given.items() if v is not None and v is not False}})

    return _with_plans(long, f, PublicSignature(f, out=gives_out, maker=True))  # type: ignore[no-any-return]


def _take_options_of_out(name: str, own: set[str], options: dict[str, Any], out: Any) -> None:
    """Make a new tensor in out's type and on its device; refuse others."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out is a {type(out).__name__}, not a tensor")
    for k, has in (("dtype", out.dtype), ("device", out.device)):
        if k in own:
            wanted = options.get(k)
            if wanted is not None and (as_dtype(wanted) if k == "dtype" else as_device(wanted)) != has:
                raise (DTypeError if k == "dtype" else DeviceError)(f"{name}: {k} is {wanted}, out has {has}; give one of the two")
            options[k] = has


def _store_results(out: Any, value: Any, name: str) -> Any:
    """A result in `out=`; several results in as many tensors."""
    if not isinstance(value, tuple):
        return write_out(out, value, name)
    if not isinstance(out, tuple | list) or len(out) != len(value):
        raise TypeError(f"{name}: out is {type(out).__name__}; {name} has {len(value)} results, give as many tensors in a tuple")
    stored = [write_out(o, v, name) for o, v in zip(out, value, strict=True)]
    return type(value)(*stored) if hasattr(value, "_fields") else tuple(stored)


def _is_integral(x: Any) -> bool:
    return isinstance(x, Tensor) and x._array.dtype.kind in "biu"


def _dtype_of_out(out: Tensor, name: str, dtype: Any) -> Any:
    """out's type, which is the one to compute in. Raises DTypeError where another is asked for."""
    if dtype is not None and as_dtype(dtype) is not out.dtype:
        raise DTypeError(f"{name}: dtype is {as_dtype(dtype).name}, out is {out.dtype.name}; give one of the two, or the same in both")
    return out.dtype


def _refuse_any_overlap(out: Any, given: tuple[Any, ...], name: str) -> None:
    """Raise where out can share an element with a tensor that is read, be it the same one in the same place."""
    for o in out if isinstance(out, list | tuple) else (out,):
        for x in given:
            if isinstance(x, Tensor) and isinstance(o, Tensor) and same_memory(x._array, o._array):
                raise ShapeError(f"{name}: out shares memory with an argument; give a tensor of its own memory")


def _require_exact_out(name: str, out: Tensor, value: Tensor) -> None:
    """Raise where out is of another type than the result, or overlaps itself."""
    if out._array.dtype != value._array.dtype:
        raise DTypeError(f"{name}: out is {out.dtype.name}, the result {value.dtype.name}; give an out of that type")
    refuse_overlap(out, name)


_MISSING: Any = object()


def wrap_in_place(f: Callable[..., Any], name: str, operands: Any) -> Callable[..., Any]:
    """The method and function that writes f's result over its first argument."""

    @wrapper
    def long(input: Tensor = _MISSING, *args: Any, **kwargs: Any) -> Tensor:
        try:
            if operands is not True:
                given = operands(input, *args, **kwargs)
            else:
                given = (input, *args) if not kwargs else ()
            # One pass over memory where no graph needs the old contents.
            if compute_into(f.__name__, input, given, name):
                return input
            since = next_sequence() if state.enabled else None
            value = f(input, *args, **kwargs)
        except (TypeError, AttributeError, ValueError, IndexError) as error:
            if input is _MISSING:
                input, kwargs = pop_first_argument(f, name, kwargs)
            else:
                (input, *args), kwargs = repair_arguments(f, name, (input, *args), kwargs, error)  # type: ignore[assignment]
        else:
            return overwrite(input, value, name, since)
        raise CallAgain((input, *args), kwargs)

    call = functools.update_wrapper(open_door(Door(long, f, name, numbers=(*f.__code__.co_varnames[1:2], "alpha"), checks=False)), f)
    call.__name__ = call.__qualname__ = name
    call.__module__ = "tritensor" if name in INPLACE_FUNCTIONS else call.__module__
    call.__signature__ = PublicSignature(f, out=False)  # type: ignore[attr-defined]
    return call
