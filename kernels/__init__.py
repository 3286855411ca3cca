"""The ops: one file per op or family. Every file of this folder is imported, and registers what it holds: adding a file adds its ops."""

import gc
import importlib
import pkgutil

from tritensor.cuda.lazy_jit import deferred_jit

# Records and kernels live as long as the process: the garbage collector, which their number would set off, has nothing to find (20 ms).
_collecting = gc.isenabled()
gc.disable()
try:
    with deferred_jit():
        for _file in sorted(m.name for m in pkgutil.iter_modules(__path__)):
            importlib.import_module(f"{__name__}.{_file}")
finally:
    if _collecting:
        gc.enable()
