"""torch._prims_common: the types that elementwise operations compute in and return."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt
from tritensor._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
from tritensor._prims_common import elementwise_dtypes, is_boolean_dtype, is_complex_dtype, is_float_dtype, is_integer_dtype

HALF, WHOLE, BITS, COMPLEX = (
    tt.ones(2, dtype=tt.float16),
    tt.ones(2, dtype=tt.int32),
    tt.ones(2, dtype=tt.bool),
    tt.ones(2, dtype=tt.complex64),
)


@pytest.mark.parametrize(
    ("operands", "kind", "compute", "result"),
    [
        ((HALF,), KIND.DEFAULT, tt.float32, tt.float16),
        ((HALF, None, 2), KIND.NO_OPMATH, tt.float16, tt.float16),
        ((HALF, tt.ones((), dtype=tt.float64)), KIND.DEFAULT, tt.float32, tt.float16),
        ((HALF, tt.ones(2, dtype=tt.bfloat16)), KIND.DEFAULT, tt.float32, tt.float32),
        ((WHOLE, 2.5), KIND.DEFAULT, tt.float32, tt.float32),
        ((WHOLE,), KIND.INT_TO_FLOAT, tt.float32, tt.float32),
        ((BITS,), KIND.INT_TO_FLOAT, tt.float32, tt.float32),
        ((HALF,), KIND.INT_TO_FLOAT, tt.float32, tt.float16),
        ((HALF, WHOLE), KIND.ALWAYS_BOOL, tt.float32, tt.bool),
        ((COMPLEX,), KIND.COMPLEX_TO_FLOAT, tt.complex64, tt.float32),
        ((WHOLE,), KIND.COMPLEX_TO_FLOAT, tt.int32, tt.int32),
        ((BITS,), KIND.BOOL_TO_LONG, tt.int64, tt.int64),
        ((WHOLE,), KIND.BOOL_TO_LONG, tt.int32, tt.int32),
    ],
)
def test_types_meet_as_in_pytorch(operands: tuple[Any, ...], kind: Any, compute: Any, result: Any) -> None:
    assert elementwise_dtypes(*operands, type_promotion_kind=kind) == (compute, result)


def test_questions_about_types() -> None:
    asked = (is_boolean_dtype, is_integer_dtype, is_float_dtype, is_complex_dtype)
    for i, x in enumerate((BITS, WHOLE, HALF, COMPLEX)):
        assert [ask(x.dtype) for ask in asked] == [i == j for j in range(4)]
    with pytest.raises(TypeError, match="elementwise_dtypes: no tensor and no number"):
        elementwise_dtypes(None, type_promotion_kind=KIND.DEFAULT)
