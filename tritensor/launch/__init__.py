"""`python -m tritensor.launch -n 4 train.py`: starts a script as many ranks, through mpiexec, and reports the first failure among them."""

import importlib
import inspect
import sys
import types
from typing import Any


class _Package(types.ModuleType):
    """Kernel authors know another `tritensor.launch`, the function of cuda/launch.py; where this package has been imported it stands in its
    place, and passes calls on to it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def function(self) -> Any:
        """The other one."""
        return importlib.import_module("tritensor.cuda.launch").launch

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)


sys.modules[__name__].__class__ = _Package
