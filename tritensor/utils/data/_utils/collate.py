"""PyTorch's path of collation: the functions by type that `default_collate` calls, and their map."""

import re

from tritensor.data.collate import collate as collate
from tritensor.data.collate import collate_number_fn as collate_float_fn
from tritensor.data.collate import collate_number_fn as collate_int_fn
from tritensor.data.collate import collate_numpy_array_fn as collate_numpy_array_fn
from tritensor.data.collate import collate_numpy_scalar_fn as collate_numpy_scalar_fn
from tritensor.data.collate import collate_str_fn as collate_str_fn
from tritensor.data.collate import collate_tensor_fn as collate_tensor_fn
from tritensor.data.collate import default_collate as default_collate
from tritensor.data.collate import default_collate_fn_map as default_collate_fn_map
from tritensor.data.collate import default_convert as default_convert

np_str_obj_array_pattern = re.compile("[SaUO]")  # codes of numpy's types that are no numbers: bytes, text and objects

__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn", "collate_numpy_scalar_fn", "collate_str_fn",
    "collate_tensor_fn", "default_collate", "default_collate_fn_map", "default_convert",
]  # fmt: skip
