"""Module: the base of every layer and network, PyTorch's in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tritensor.autograd.accumulate import zero_gradient
from tritensor.nn import compilation, hooks, state
from tritensor.nn.hooks import Hooks, RemovableHandle
from tritensor.nn.moving import Movable
from tritensor.nn.parameter import Buffer, Parameter
from tritensor.tensor.core import Tensor

T_destination = TypeVar("T_destination", bound=dict[str, Any])  # how programs annotate what state_dict fills


class Module(Movable):
    """Base class of neural networks: subclass it, make parts in `__init__`, compute in `forward`.

    Parameters, buffers and modules assigned as attributes are registered under the attribute's name; everything
    below walks over them. Calling a module runs `forward` and its hooks.

    >>> class Scale(nn.Module):
    ...     def __init__(self, size):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(tt.ones(size))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scale(2)
    >>> [name for name, _ in model.named_parameters()]
    ['factor']
    >>> model(tt.tensor([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """

    training: bool
    _version = 1  # of what state_dict() holds: a subclass that changes that counts up, and reads the number back when it loads
    _hooks: Hooks | None = None  # made with the first hook: without it a call goes straight to forward

    T_destination = T_destination
    call_super_init = False  # a subclass of several classes says True: __init__ then goes on to the next of them, with its arguments
    dump_patches = False  # changes nothing; older code sets it

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _modules={})
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            given = f"argument {next(iter(kwargs))!r}" if kwargs else f"{len(args)} arguments by place"
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected {given}; Module.__init__() takes none")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; a subclass defines it. Call the module itself, which also runs its hooks."""
        raise NotImplementedError(f'{type(self).__name__}: missing the required "forward" function; define forward(self, ...) in it')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None:
            return self.forward(*args, **kwargs)
        return hooks.call(self, args, kwargs)

    _call_impl, _wrapped_call_impl = hooks.call_uncompiled, __call__  # PyTorch's private names, which older code calls
    _forward_hooks, _forward_pre_hooks, _backward_hooks = hooks.table("forward"), hooks.table("forward_pre"), hooks.table("backward")
    _backward_pre_hooks, _state_dict_hooks, _state_dict_pre_hooks = (
        hooks.table(kind) for kind in ("backward_pre", "state_post", "state_pre")
    )
    _load_state_dict_pre_hooks, _load_state_dict_post_hooks = hooks.table("load_pre"), hooks.table("load_post")

    # registration
    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`; None keeps the name and stays out of parameters() and the state_dict."""
        table = self._check_name("parameter", "_parameters", name)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(f"register_parameter: cannot assign '{type(param).__name__}' as '{name}'; give an nn.Parameter or None")
            if param.grad_fn is not None:
                raise ValueError(f"register_parameter: cannot assign a computed tensor to parameter '{name}', a leaf; wrap its .detach()")
        table[name] = hooks.run_registration_hooks("parameter", self, name, param) if hooks.REGISTRATION["parameter"] else param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer under `name`: saved in the state_dict unless persistent=False, moved by to(), not learned."""
        table = self._check_name("buffer", "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer: cannot assign '{type(tensor).__name__}' object to buffer '{name}'; give a Tensor or None")
        table[name] = hooks.run_registration_hooks("buffer", self, name, tensor) if hooks.REGISTRATION["buffer"] else tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under `name`."""
        table = self._check_name("module", "_modules", name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"add_module: {type(module).__name__} is not a Module subclass; give a Module")
        table[name] = hooks.run_registration_hooks("module", self, name, module) if hooks.REGISTRATION["module"] else module

    register_module = add_module

    def _check_name(self, what: str, kind: str, name: str) -> dict[str, Any]:
        """The table for `kind`, once `name` has been found fit and free."""
        table: dict[str, Any] | None = self.__dict__.get(kind)
        if table is None:
            raise self._uninitialised_error(what)
        if not isinstance(name, str):
            raise TypeError(f"register_{what}: {what} name should be a string, not {type(name).__name__}; give a str")
        if not name or "." in name:
            raise KeyError(f'register_{what}: {what} name "{name}" must not be empty or contain "."')
        # __getattr__ is asked last: beside a method of that name the member could never be read
        if name not in table and hasattr(self, name):
            raise KeyError(f"register_{what}: attribute '{name}' already exists; give another name")
        return table

    def _uninitialised_error(self, what: str) -> AttributeError:
        return AttributeError(f"{type(self).__name__}: cannot assign {what} before Module.__init__() call: call super().__init__() first")

    def _mismatch_error(self, name: str, value: Any, kind: str, base: Any, what: str) -> TypeError:
        expected = "Tensor" if kind == "_buffers" else f"nn.{base.__name__}"
        mend = f"take the {what} away first, by del" if isinstance(value, Module | Buffer) else "wrap it"
        return TypeError(
            f"{type(self).__name__}: cannot assign '{type(value).__name__}' as {what} '{name}' ({expected} or None expected); {mend}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        for kind, base, what in _KINDS:
            if isinstance(value, base):
                if kind not in fields:
                    raise self._uninitialised_error(what)
                for before in _KINDS:  # a parameter takes any name, a module none of a parameter's, a buffer neither's
                    if before[0] == kind:
                        break
                    if name in fields[before[0]]:
                        raise self._mismatch_error(name, value, *before)
                for other in ("_parameters", "_buffers", "_modules"):
                    if other != kind:
                        fields[other].pop(name, None)
                fields.pop(name, None)
                if kind == "_buffers":
                    self.register_buffer(name, value, value.persistent)
                elif kind == "_parameters":
                    self.register_parameter(name, value)
                else:  # not asked whether there is such an attribute: a wrapper's __getattr__ would ask the module that is not there yet
                    fields[kind][name] = (
                        hooks.run_registration_hooks("module", self, name, value) if hooks.REGISTRATION["module"] else value
                    )
                return
        for kind, base, what in _KINDS:
            table = fields.get(kind)
            if table is not None and name in table:
                if value is None or (kind == "_buffers" and isinstance(value, Tensor)):
                    table[name] = value
                    return
                raise self._mismatch_error(name, value, kind, base, what)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        # _modules is absent while a copy is being built
        if "_modules" in fields and (
            name in (found := fields["_parameters"]) or name in (found := fields["_modules"]) or name in (found := fields["_buffers"])
        ):
            return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(n for n in names if not n[:1].isdigit())  # '0' is no attribute anyone can write

    # walking
    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Members of this module and of those below, as get_members_fn tells them of each: subclasses have kinds of their own."""
        seen: set[int] = set()
        for at, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield f"{at}.{name}" if at else name, member

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of this module and those below, each parameter once."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, those of modules below too unless recurse=False; each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) of this module and those below, each buffer once."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, those of modules below too unless recurse=False; each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the modules directly below, each once."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below this one; each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(name, module) of this module, named `prefix`, and all below; a shared one once, under its first name."""
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                if module is not None:
                    yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it; each once, unless remove_duplicate=False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def get_submodule(self, target: str) -> Module:
        """The module called `target`, such as "layers.0.fc"; "" is this module. Raises AttributeError naming the part that is not there."""
        found: Module = self
        for part in target.split(".") if target else ():
            if not hasattr(found, part):
                raise AttributeError(f"{type(found).__name__} has no attribute `{part}`")
            found = getattr(found, part)
            if not isinstance(found, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` where the module called `target` is, such as "layers.0.fc". Unless strict it may be a new name in a module."""
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("set_submodule: the target is empty; name a module below this one")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        parent.add_module(name, module)

    def _get_member(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in getattr(module, table):
            raise AttributeError(f"{type(module).__name__} has no {what} `{name}`")
        return getattr(module, table)[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter called `target`, such as "layers.0.fc.weight"."""
        found: Parameter = self._get_member(target, "_parameters", "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer called `target`."""
        found: Tensor = self._get_member(target, "_buffers", "buffer")
        return found

    # state
    def state_dict(
        self, *args: Any, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Names and values of all parameters and persistent buffers, sharing memory with them; keep_vars=True keeps the parameters themselves.

        An OrderedDict; its `_metadata` holds the `_version` of each module by name. Older code gives destination, prefix and keep_vars by place.
        """
        if args:
            given: tuple[Any, ...] = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given
        found = state.new_state_dict() if destination is None else destination
        local = state.note_metadata(self, found, prefix)
        if self._hooks is not None:
            for hook in list(self._hooks.state_pre.values()):
                hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return found if self._hooks is None else hooks.run_state_dict_hooks(self, found, prefix, local)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        # a class without extra state must not be called: Module's own raises
        if state.defines_extra_state(self, "get_extra_state"):
            destination[prefix + state.EXTRA] = self.get_extra_state()

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True, assign: bool = False) -> state.IncompatibleKeys:
        """Copy values into parameters and buffers of the same names; returns (missing_keys, unexpected_keys).

        Values are tensors or numpy arrays and are cast to the type that is here; assign=True puts them in place of the parameters instead.
        Raises CheckpointError, with nothing copied, naming every missing and unexpected key (unless strict=False) and every wrong shape.
        """
        if not hasattr(state_dict, "items"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict).__name__}")
        return state.load(self, state_dict, strict, assign)

    _load_from_state_dict = state.check

    def get_extra_state(self) -> Any:
        """What a subclass saves in state_dict() beside parameters and buffers, any object; called only where it is defined."""
        raise RuntimeError(f"{type(self).__name__}.get_extra_state is not there; define it where set_extra_state is defined")

    def set_extra_state(self, state: Any) -> None:
        """Take what get_extra_state gave; called only where it is defined."""
        raise RuntimeError(f"{type(self).__name__}.set_extra_state is not there; define it where get_extra_state is defined")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(hooks.strip_foreign_hooks(self, state))

    compile = compilation.compile
    _compiled_call_impl = compilation.compiled_call

    # modes and gradients
    def train(self, mode: bool = True) -> Any:
        """Put this module and all below into training mode (dropout drops); returns self."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, not {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Put this module and all below into evaluation mode; returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set requires_grad of every parameter; returns the module. With False it is frozen."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters; set_to_none=False fills them with zeros instead."""
        for param in self.parameters():
            if set_to_none:
                param.grad = None
            else:
                zero_gradient(param)

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Call `fn` on every module below and then on this one; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # hooks
    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Before forward, `hook(module, args)` -> None or new args; with_kwargs: `hook(module, args, kwargs)` -> None or (args, kwargs)."""
        return hooks.add(self, "forward_pre", (hook, with_kwargs, False), first=prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """After forward, `hook(module, args, output)` (with_kwargs: `hook(module, args, kwargs, output)`) -> None or a new output.

        always_call=True runs it also when forward raises."""
        return hooks.add(self, "forward", (hook, with_kwargs, always_call), first=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """When the gradients of the outputs are there: `hook(module, grad_output)` -> None or new ones."""
        return hooks.add(self, "backward_pre", hook, first=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """When the gradients of the inputs are there: `hook(module, grad_input, grad_output)` -> None or new grad_input."""
        return hooks.add(self, "backward", hook, first=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The old form, which sees the gradients of forward's last op: `hook(module, grad_input, grad_output)`. Use register_full_backward_hook."""
        return hooks.add(self, "backward_old", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Before this module's part of state_dict(): `hook(module, prefix, keep_vars)`."""
        return hooks.add(self, "state_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """After this module's part: `hook(module, state_dict, prefix, local_metadata)`; changes state_dict in place."""
        return hooks.add(self, "state_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Before checking: `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`; may rename keys."""
        return hooks.add(self, "load_pre", (hook, True))

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        """register_load_state_dict_pre_hook as older code has it: the hook gets the module first only where with_module says so."""
        return hooks.add(self, "load_pre", (hook, with_module))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """register_state_dict_post_hook as older code has it: what the hook returns, unless None, takes the state dict's place."""
        return hooks.add(self, "state_post", hooks.Replacing(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """After loading: `hook(module, incompatible_keys)`; may strike names from its lists."""
        return hooks.add(self, "load_post", hook)

    # printing
    def extra_repr(self) -> str:
        """What repr shows between the brackets before the children."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({lines[0]})"
        lines += [f"({name}): {indent_lines(repr(module))}" for name, module in self._modules.items()]
        return self._get_name() + ("(\n  " + "\n  ".join(lines) + "\n)" if lines else "()")

    def _get_name(self) -> str:
        return type(self).__name__


_KINDS: tuple[tuple[str, Any, str], ...] = (
    ("_parameters", Parameter, "parameter"),
    ("_modules", Module, "child module"),
    ("_buffers", Buffer, "buffer"),
)


def indent_lines(text: str) -> str:
    """`text` with every line after the first moved two to the right."""
    return text.replace("\n", "\n  ")
