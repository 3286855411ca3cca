"""Views, reorderings, joining and splitting, moving between devices."""

from tritensor.tensor.functions.shaping import combining as combining
from tritensor.tensor.functions.shaping import copies as copies
from tritensor.tensor.functions.shaping import joining as joining
from tritensor.tensor.functions.shaping import reshaping as reshaping
from tritensor.tensor.functions.shaping import resizing as resizing
from tritensor.tensor.functions.shaping import strided as strided
