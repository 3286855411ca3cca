"""PyTorch's torch.autograd.functional: Jacobians, Hessians and their products with vectors, of a function of tensors, by reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.autograd.engine import grad
from tritensor.autograd.modes import enable_grad, is_grad_enabled, set_grad_enabled
from tritensor.ground.errors import AssertedArgumentError, GradError, ShapeError
from tritensor.ground.providers import provider
from tritensor.ops.table import ops

Tensors = tuple[Any, ...]
Function = Callable[..., Any]


def _tuple(given: Any, what: str, who: str) -> tuple[bool, Tensors]:
    """A flag, set where a tuple (or list) was given, and its tensors. Raises TypeError for what is no tensor."""
    several = isinstance(given, tuple | list)
    found = tuple(given) if several else (given,)
    for i, t in enumerate(found):
        if not hasattr(t, "_tracked"):
            at = f"value {i} is" if several else "it is"
            raise TypeError(
                f"{who}: {what} must be a Tensor or a tuple of Tensors, but {at} a {type(t).__name__}; wrap it with tensor(...)"
            )
    return several, found


def _leaves(inputs: Tensors, create_graph: bool, need_graph: bool = True) -> Tensors:
    """Inputs to differentiate at: views of those given where the result is to be differentiated, leaves of their own otherwise."""
    if create_graph:
        # A view: the result stays a function of what was given.
        return tuple([ops.reshape(t, shape=t._array.shape) if t._tracked or not need_graph else _leaf(t, True) for t in inputs])
    return tuple([_leaf(t, need_graph) for t in inputs])


def _leaf(t: Any, need_graph: bool) -> Any:
    made = t.detach()
    return made.requires_grad_() if need_graph else made


def _result(found: Tensors, create_graph: bool, several: bool) -> Any:
    """What is returned: detached where no graph was asked for, and as tuple or tensor."""
    kept = found if create_graph else tuple([t.detach() for t in found])
    return kept if several else kept[0]


def _call(func: Function, inputs: Tensors, who: str, strict: bool) -> tuple[bool, Tensors]:
    several, outputs = _tuple(func(*inputs), "what the function returns", who)
    for i, y in enumerate(outputs):
        if strict and not y._tracked:
            raise GradError(
                f"{who}: Output {i} of the user-provided function does not require gradients, which strict=True refuses; compute it from the inputs"
            )
    return several, outputs


def _vector(v: Any, like: Tensors, several: bool, who: str, of: str) -> Tensors:
    """v checked against what it multiplies; 1 for a single element where it was left out."""
    if v is None:
        if len(like) != 1 or like[0]._array.size != 1:
            raise GradError(f"{who}: v can only be None where the {of} is a single tensor of one element; give v of the {of}'s shape")
        return (ops.full(shape=like[0]._array.shape, value=1, dtype=like[0]._array.dtype, device=like[0].device),)
    given, found = _tuple(v, "v", who)
    if len(found) != len(like) or (given != several and len(like) > 1):
        raise ShapeError(f"{who}: v is {len(found)} tensor(s) for {len(like)} {of}(s); give one for each")
    for i, (a, b) in enumerate(zip(found, like, strict=True)):
        if a._array.shape != b._array.shape:
            raise ShapeError(f"{who}: v[{i}] has shape {tuple(a._array.shape)}, its {of} {tuple(b._array.shape)}; both must be the same")
    return found


def _zero(like: Any) -> Any:
    return ops.full(shape=like._array.shape, value=0, dtype=like._array.dtype, device=like.device)


def _grads(outputs: Tensors, inputs: Tensors, vectors: Sequence[Any] | None, create_graph: bool) -> tuple[Any, ...]:
    """Gradients by inputs, None where there is none; outputs without a graph count for nothing."""
    vectors = [None] * len(outputs) if vectors is None else vectors
    taken = [(y, v) for y, v in zip(outputs, vectors, strict=True) if y is not None and y._tracked]
    if not taken:
        return (None,) * len(inputs)
    return grad([y for y, _ in taken], list(inputs), [v for _, v in taken], allow_unused=True, create_graph=create_graph, retain_graph=True)


def _filled(found: Sequence[Any], like: Tensors, strict: bool, create_graph: bool, who: str, what: str, of: str = "input") -> Tensors:
    """Zeros for gradients that are None. Raises GradError for those with strict, and for constant ones that are to be differentiated."""
    filled = []
    for i, (g, x) in enumerate(zip(found, like, strict=True)):
        if strict and g is None:
            raise GradError(f"{who}: {what} is independent of {of} {i}, which strict=True refuses; use the {of}, or leave strict out")
        if strict and create_graph and not g._tracked:
            raise GradError(
                f"{who}: the derivative of {what} by {of} {i} is independent of the inputs, which strict=True refuses with create_graph=True"
            )
        filled.append(_zero(x) if g is None else g)
    return tuple(filled)


OUTPUT = "the output of the user-provided function"


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(inputs), v^T J): v times the Jacobian. `v` has the outputs' shapes; it may be left out for one element."""
    with enable_grad():
        several, args = _tuple(inputs, "inputs", "vjp")
        args = _leaves(args, create_graph)
        many, outputs = _call(func, args, "vjp", strict)
        vectors = _vector(v, outputs, many, "vjp", "output")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _grads(outputs, args, vectors, create_graph)
        product = _filled(found, args, strict, create_graph, "vjp", OUTPUT)
    return _result(outputs, create_graph, many), _result(product, create_graph, several)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(inputs), J v): the Jacobian times v, by differentiating v^T J by its vector. `v` has the inputs' shapes."""
    with enable_grad():
        several, args = _tuple(inputs, "inputs", "jvp")
        args = _leaves(args, create_graph)
        vectors = _vector(v, args, several, "jvp", "input")
        many, outputs = _call(func, args, "jvp", strict)
        # v^T J is linear in v, and its derivative by v is J: two backwards make a forward mode.
        u = tuple([_zero(y).requires_grad_() for y in outputs])
        found = _filled(_grads(outputs, args, u, True), args, strict, False, "jvp", OUTPUT)
        along = _grads(found, u, vectors, create_graph)
        product = _filled(along, outputs, strict, create_graph, "jvp", "the gradient by the inputs", "entry of the outputs")
    return _result(outputs, create_graph, many), _result(product, create_graph, many)


def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"
) -> Any:
    """The Jacobian: for each output and input a tensor of the output's shape followed by the input's.

    Args:
        create_graph: the result can be differentiated.
        strict: refuse an output that an input takes no part in, of which there would be zeros.
        vectorize: one backward for all elements of the outputs at once, as func.vmap takes them; otherwise one for each.
        strategy: "forward-mode" goes by func.jvp, once for all elements of the inputs: for functions of few numbers that give many. With vectorize.

    Returns:
        a tensor; a tuple by inputs, by outputs, or of tuples (outputs, then inputs) where those are tuples.

    Raises:
        GradError: with strict, an output that an input takes no part in.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertedArgumentError(f'jacobian: strategy {strategy!r}; give "reverse-mode" or "forward-mode"')
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError('jacobian: create_graph=True with strategy="forward-mode"; leave strategy out')
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError('jacobian: strategy="forward-mode" wants vectorize=True; give both, or neither')
    if vectorize and strict:
        raise GradError("jacobian: strict=True and vectorize=True do not go together; leave one of them out")
    with enable_grad():
        several, args = _tuple(inputs, "inputs", "jacobian")
        args = _leaves(args, create_graph)
        if strategy == "forward-mode":
            return _forward(func, args, several)
        many, outputs = _call(func, args, "jacobian", strict)
        if vectorize:
            rows = _rows_at_once(outputs, args, create_graph)
        else:
            rows = tuple([_rows(i, y, args, create_graph, strict) for i, y in enumerate(outputs)])
    return _arrange(rows, create_graph, many, several)


def _rows(i: int, y: Any, args: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of output i by each input."""
    flat = y.reshape(-1)
    found = []
    for j in range(y._array.size):
        row = _grads((flat[j],), args, None, create_graph)
        found.append(_filled(row, args, strict, create_graph, "jacobian", f"output {i} of the user-provided function"))
    stacked = []
    for k, x in enumerate(args):
        columns = [row[k] for row in found]
        shape = (*y._array.shape, *x._array.shape)
        if columns:
            stacked.append(ops.reshape(ops.stack(*columns, dim=0), shape=shape))
        else:
            stacked.append(ops.full(shape=shape, value=0, dtype=x._array.dtype, device=x.device))
    return tuple(stacked)


def _rows_at_once(outputs: Tensors, args: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
    """The Jacobians of all outputs by each input: the unit vectors of the outputs, in one batch."""
    jacobians: Any = provider("func.jacobians")
    taken = [y for y in outputs if y._tracked and y._array.size]
    units = jacobians.basis(taken)
    found: Sequence[Any] = (None,) * len(args)
    if taken:
        found = grad(taken, list(args), units, allow_unused=True, create_graph=create_graph, retain_graph=True, is_grads_batched=True)
    rows, first = [], 0
    for y in outputs:
        here = y._tracked and y._array.size
        row = []
        for g, x in zip(found, args, strict=True):
            shape = (*y._array.shape, *x._array.shape)
            if g is None or not here:
                row.append(ops.full(shape=shape, value=0, dtype=x._array.dtype, device=x.device))
            else:
                row.append(ops.reshape(ops.index_view(g, index=(slice(first, first + y._array.size),)), shape=shape))
        first += y._array.size if here else 0
        rows.append(tuple(row))
    return tuple(rows)


def _forward(func: Function, args: Tensors, several: bool) -> Any:
    """The Jacobian by forward mode, a column for each element of the inputs, all at once."""
    functions: Any = provider("func")
    many = False

    def checked(*xs: Any) -> Tensors:
        nonlocal many
        many, outputs = _call(func, xs, "jacobian", False)
        return outputs

    rows = functions.jacfwd(checked, tuple(range(len(args))))(*args)
    return _arrange(rows, False, many, several)


def _arrange(rows: tuple[Tensors, ...], create_graph: bool, many: bool, several: bool) -> Any:
    """Jacobians as they are returned: by outputs where these are `many`, then by inputs where these are `several`."""
    if not create_graph:
        rows = tuple([tuple([t.detach() for t in row]) for row in rows])
    if many:
        return rows if several else tuple([row[0] for row in rows])
    return rows[0] if several else rows[0][0]


def _scalar(func: Function, who: str) -> Function:
    """func, checked to give one tensor of one element."""

    def call(*args: Any) -> Any:
        y = func(*args)
        many, ys = _tuple(y, "what the function returns", who)
        if many:
            raise GradError(
                f"{who}: The function given to {who} should return a single Tensor, not a tuple; return the one to differentiate"
            )
        if ys[0]._array.size != 1:
            raise GradError(
                f"{who}: The Tensor returned by the function given to {who} should contain a single element, not shape {tuple(ys[0].shape)}; reduce it"
            )
        return ys[0].squeeze()  # PyTorch lets a tensor of one element pass for a number

    return call


def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Hessian of a function that gives one element: for each two inputs a tensor of the first's shape followed by the second's.

    A tensor, or where inputs are a tuple a tuple of tuples. Options as jacobian's.
    """
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise AssertedArgumentError(f'hessian: outer_jacobian_strategy {outer_jacobian_strategy!r}; give "reverse-mode" or "forward-mode"')
    several, args = _tuple(inputs, "inputs", "hessian")
    checked = _scalar(func, "hessian")

    def gradient(*xs: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple([x if x._tracked else x.requires_grad_() for x in xs])  # jacfwd hands in tensors outside of any graph
        found = jacobian(checked, xs, create_graph=True)
        if strict:
            _refuse_constant(found, xs)
        return tuple([g.reshape(x.shape) for g, x in zip(found, xs, strict=True)])

    found = jacobian(gradient, args, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy)
    return found if several else found[0][0]


def _refuse_constant(found: Tensors, xs: Tensors) -> None:
    for i, (g, x) in enumerate(zip(found, xs, strict=True)):
        if not g._tracked or all(t is None for t in grad(g.sum(), [x], allow_unused=True, retain_graph=True)):
            raise GradError(
                f"hessian: The jacobian of the user-provided function with respect to input {i} is independent of the input, which strict=True refuses"
            )


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(inputs), v^T H): v times the Hessian of a function that gives one element. `v` has the inputs' shapes."""
    return _multiply_hessian("vhp", func, inputs, v, create_graph, strict)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(func(inputs), H v): the Hessian of a function that gives one element times v, without forming it; v^T H, as H is symmetric.

    PyTorch goes back twice through the gradient to get it; the gradient's own gradient is the same and shorter (Pearlmutter 1994).
    """
    return _multiply_hessian("hvp", func, inputs, v, create_graph, strict)


def _multiply_hessian(who: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool) -> tuple[Any, Any]:
    with enable_grad():
        several, args = _tuple(inputs, "inputs", who)
        args = _leaves(args, create_graph)
        vectors = _vector(v, args, several, who, "input")
        y = _value(func, args, who, strict)
        slope = _filled(_grads((y,), args, None, True), args, strict, strict, who, OUTPUT)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _grads(slope, args, vectors, create_graph)
        product = _filled(found, args, strict, create_graph, who, "the jacobian of the user-provided function")
    return _result((y,), create_graph, False), _result(product, create_graph, several)


def _value(func: Function, args: Tensors, who: str, strict: bool) -> Any:
    """The one element that a function gives."""
    many, outputs = _call(func, args, who, strict)
    if many or outputs[0]._array.size != 1:
        what = "a tuple" if many else f"shape {tuple(outputs[0].shape)}"
        raise GradError(f"{who}: The function given to {who} should return a single Tensor with a single element, not {what}; reduce it")
    return outputs[0]
