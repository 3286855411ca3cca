"""Rules for batches, a file for each family of ops."""

from tritensor.func.rules import dimensions as dimensions
from tritensor.func.rules import images as images
from tritensor.func.rules import indexing as indexing
from tritensor.func.rules import losses as losses
from tritensor.func.rules import matrices as matrices
from tritensor.func.rules import normalization as normalization
from tritensor.func.rules import views as views
from tritensor.func.rules.registry import RULES as RULES
from tritensor.func.rules.registry import map_op as map_op
