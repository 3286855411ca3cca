"""Registry of functionals: one function for every kind of input, and below it a kernel for each kind."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.process import locks
from tritensor.tensor.core import Tensor
from tritensor.vision import tv_tensors as tv
from tritensor.vision.pillow import is_pil_image

Kernel = Callable[..., Any]

KINDS: dict[str, type] = {
    "image": tv.Image,
    "video": tv.Video,
    "mask": tv.Mask,
    "bounding_boxes": tv.BoundingBoxes,
    "keypoints": tv.KeyPoints,
}
OTHER_NAMES = {
    "hflip": "horizontal_flip", "vflip": "vertical_flip", "elastic_transform": "elastic", "to_grayscale": "rgb_to_grayscale",
    "get_image_num_channels": "get_num_channels",
}  # fmt: skip
PIL = "PIL.Image.Image"  # what stands for Pillow's class, which is not imported for it
_making = locks.lock()
_registry: dict[Kernel, dict[Any, Kernel]] = {}  # by functional, by class
kernels: dict[str, Kernel] = {}  # of plain tensors, by name: resize_mask


def functional(*, pil: Kernel | None = None, **plain: Kernel | None) -> Callable[[Kernel], Kernel]:
    """Decorator of a functional, whose body is never run: it gives the name, the signature and the docstring.

    `plain` are kernels of plain tensors by kind (KINDS); videos are treated as images where nothing, not even None, is said. `pil` is that of
    Pillow's images. A kernel takes of the functional's arguments those that it names, and of the input's facts (format, canvas_size, ...) as well; a second
    result is the new canvas. Each is public as well, as `resize_mask`.
    """

    def decorate(stub: Kernel) -> Kernel:
        signature = inspect.signature(stub)

        @functools.wraps(stub)
        def call(inpt: Any, *args: Any, **kwargs: Any) -> Any:
            return find_kernel(call, inpt)(inpt, *args, **kwargs)

        if "image" in plain:
            plain.setdefault("video", plain["image"])
        found: dict[Any, Kernel] = {} if pil is None else {PIL: pil}
        if (bare := plain.get("image", plain.get("video"))) is not None:
            found[Tensor] = bare
        given = {kind: kernel for kind, kernel in plain.items() if kernel is not None}
        found |= {KINDS[kind]: _on_facts(kernel, signature) for kind, kernel in given.items()}
        with _making:
            kernels.update({f"{stub.__name__}_{kind}": kernel for kind, kernel in given.items()})
            _registry[call] = found
        return call

    return decorate


def _on_facts(kernel: Kernel, signature: inspect.Signature) -> Kernel:
    """A kernel of plain tensors as one of TVTensors."""
    taken = list(inspect.signature(kernel).parameters)[1:]

    def run(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(list(signature.bind(inpt, *args, **kwargs).arguments.items())[1:])
        known = {name: getattr(inpt, name) for name in inpt._facts if name in taken}
        known |= {name: value for name, value in given.items() if name in taken}
        return _rewrap(kernel(inpt.as_subclass(Tensor), **known), inpt)

    return run


def _rewrap(output: Any, like: Any) -> Any:
    """What a kernel gave as what it was given: tensors, also in a tuple of crops; (tensor, canvas) with the new canvas; sizes as they are."""
    if isinstance(output, Tensor):
        return tv.wrap(output, like=like)
    if not isinstance(output, tuple):
        return output
    if not isinstance(output[1], Tensor):
        return tv.wrap(output[0], like=like, canvas_size=tuple(output[1]))
    return tuple(tv.wrap(part, like=like) for part in output)


def find_kernel(function: Kernel, inpt: Any) -> Kernel:
    """The kernel of a functional for an input. Raises TypeError where there is none."""
    if (kernel := _lookup(function, inpt)) is not None:
        return kernel
    known = ", ".join(k if isinstance(k, str) else k.__name__ for k in _registry[function])
    raise TypeError(f"{function.__name__}: supports inputs of type {known}, but got {type(inpt).__name__} instead")


def apply_or_pass(function: Kernel, inpt: Any, *args: Any, **kwargs: Any) -> Any:
    """What a functional makes of an input; the input as it is where the functional has no kernel for it."""
    kernel = _lookup(function, inpt)
    return inpt if kernel is None else kernel(inpt, *args, **kwargs)


def _lookup(function: Kernel, inpt: Any) -> Kernel | None:
    if function not in _registry:
        raise ArgumentError(f"{getattr(function, '__name__', function)!r} has no kernels: it is no functional of transforms.v2.functional")
    found = _registry[function]
    if is_pil_image(inpt):
        return found.get(PIL)
    for cls in type(inpt).__mro__:
        if cls in found:
            return found[cls]
        if cls is tv.TVTensor:  # a program's own class is no image because it is a tensor
            return None
    return None


def register_kernel(functional: Kernel | str, tv_tensor_cls: type) -> Callable[[Kernel], Kernel]:
    """Decorator of what a functional, given itself or by name, does with a program's own class of TVTensors: called with all that the functional is.

    Raises ValueError for other functions and classes, and for a class that has a kernel.
    """
    if isinstance(functional, str):
        by_name = {f.__name__: f for f in _registry}
        functional = OTHER_NAMES.get(functional, functional)
        if functional not in by_name:
            raise ArgumentError(
                f"register_kernel: Could not find functional with name '{functional}'; there are {', '.join(sorted(by_name))}"
            )
        function: Kernel = by_name[functional]
    elif not callable(functional) or functional not in _registry:
        raise ArgumentError(
            f"register_kernel: Kernels can only be registered on functionals of transforms.v2.functional, but got {functional}"
        )
    else:
        function = functional
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, tv.TVTensor)):
        raise ArgumentError(f"register_kernel: Kernels can only be registered for subclasses of TVTensor, but got {tv_tensor_cls}")
    if tv_tensor_cls in (tv.TVTensor, *KINDS.values()):
        raise ArgumentError(f"register_kernel: Kernels cannot be registered for the builtin tv_tensor classes, but got {tv_tensor_cls}")

    def decorate(kernel: Kernel) -> Kernel:
        if tv_tensor_cls in _registry[function]:
            raise ArgumentError(f"register_kernel: {function.__name__} already has a kernel registered for type {tv_tensor_cls}")
        _registry[function][tv_tensor_cls] = kernel
        return kernel

    return decorate


def is_pure_tensor(inpt: Any) -> bool:
    """Whether an input is a tensor that does not say what it is."""
    return isinstance(inpt, Tensor) and not isinstance(inpt, tv.TVTensor)
