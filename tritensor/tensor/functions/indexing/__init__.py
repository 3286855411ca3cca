"""Elements picked and put by position."""

from tritensor.tensor.functions.indexing import diagonal as diagonal
from tritensor.tensor.functions.indexing import masking as masking
from tritensor.tensor.functions.indexing import parts as parts
from tritensor.tensor.functions.indexing import picking as picking
from tritensor.tensor.functions.indexing import scattering as scattering
from tritensor.tensor.functions.indexing import segments as segments
from tritensor.tensor.functions.indexing import slices as slices
