"""torch.testing._internal.common_utils: TestCase, which test suites of other libraries compare tensors by, and run_tests."""

from __future__ import annotations

import unittest
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tritensor.tensor.core import Tensor
from tritensor.testing.comparison import assert_close

_PLAIN = (bool, int, float, complex, list)  # what takes a tensor's type beside it
_VALUES = (Tensor, np.generic, bool, int, float, complex)
_require_equal = unittest.TestCase.assertEqual


class TestCase(unittest.TestCase):
    """unittest's, whose assertEqual compares tensors and numbers by their types' tolerances, also those in lists, tuples and dicts."""

    __test__ = False  # pytest collects what derives from it, and not the class itself where a test file imports it

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = True

    def assertEqual(
        self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None, rtol: float | None = None, equal_nan: bool = True,
        exact_dtype: bool = True, exact_device: bool = False, exact_layout: bool = False, exact_stride: bool = False,
        exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        """Raises AssertionError where they differ; all that is neither tensor, array nor number is compared by ==."""
        options = {
            "atol": atol, "rtol": rtol, "equal_nan": equal_nan, "check_dtype": exact_dtype, "check_device": exact_device,
            "check_layout": exact_layout, "check_stride": exact_stride,
        }  # fmt: skip
        self._compare(x, y, msg, options)

    def _compare(self, x: Any, y: Any, msg: Any, options: dict[str, Any]) -> None:
        x, y = (Tensor.wrap(v) if isinstance(v, np.ndarray) else v for v in (x, y))
        if isinstance(x, Tensor) and isinstance(y, _PLAIN):
            y = x.new_tensor(y)
        elif isinstance(y, Tensor) and isinstance(x, _PLAIN):
            x = y.new_tensor(x)
        if isinstance(x, _VALUES) and isinstance(y, _VALUES):
            assert_close(x, y, msg=msg, **options)
        elif isinstance(x, Mapping) and isinstance(y, Mapping):
            _require_equal(self, set(x), set(y), msg)
            for key in x:
                self._compare(x[key], y[key], msg, options)
        elif isinstance(x, Sequence) and isinstance(y, Sequence) and not isinstance(x, str | bytes):
            _require_equal(self, len(x), len(y), msg)
            for a, b in zip(x, y, strict=True):
                self._compare(a, b, msg, options)
        else:
            _require_equal(self, x, y, msg)


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the file that calls it."""
    unittest.main(argv=argv)
