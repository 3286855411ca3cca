"""The transform that tritensor.func puts in place for the lower floors: see ground/transforms/transform.py."""

from __future__ import annotations

from tritensor.func import functions, interpreter, mapping
from tritensor.ground.transforms import transform


class FuncTransform(transform.Transform):
    """grad, jvp and vmap over wrapped tensors."""

    run = staticmethod(interpreter.run)
    draw = staticmethod(interpreter.draw)
    add = staticmethod(interpreter.add)
    write = staticmethod(interpreter.write)
    adopt = staticmethod(interpreter.adopt)
    like = staticmethod(interpreter.like)
    spread = staticmethod(interpreter.spread)
    detached = staticmethod(interpreter.detached)
    apply_function = staticmethod(functions.apply_function)
    for_each = staticmethod(mapping.for_each)


transform.current = FuncTransform()  # once: lower floors ask it, and import nothing of this room
