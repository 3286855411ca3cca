"""Functions of single elements, and the operators."""

from tritensor.tensor.functions.pointwise import activations as activations
from tritensor.tensor.functions.pointwise import comparing as comparing
from tritensor.tensor.functions.pointwise import complex_numbers as complex_numbers
from tritensor.tensor.functions.pointwise import elementary as elementary
from tritensor.tensor.functions.pointwise import floats as floats
from tritensor.tensor.functions.pointwise import multiples as multiples
from tritensor.tensor.functions.pointwise import operators as operators
from tritensor.tensor.functions.pointwise import special as special
