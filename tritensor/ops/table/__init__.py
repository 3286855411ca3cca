"""The op table: the record of an op with its four corners, registration that checks the whole record, and look-up by name."""

from tritensor.ops.table.lookup import Ops as Ops
from tritensor.ops.table.lookup import ops as ops
from tritensor.ops.table.lookup import registry as registry
from tritensor.ops.table.record import FLOATS as FLOATS
from tritensor.ops.table.record import INTS as INTS
from tritensor.ops.table.record import Op as Op
from tritensor.ops.table.record import Partials as Partials
from tritensor.ops.table.record import Sample as Sample
from tritensor.ops.table.record import Spec as Spec
from tritensor.ops.table.record import Work as Work
from tritensor.ops.table.registration import op as op
from tritensor.ops.table.registration import restore as restore
from tritensor.ops.table.shape_rules import broadcast as broadcast
from tritensor.ops.table.shape_rules import normal_dim as normal_dim
from tritensor.ops.table.shape_rules import normal_dims as normal_dims
from tritensor.ops.table.shape_rules import refuse_kind as refuse_kind
from tritensor.ops.table.shape_rules import refuse_mixed as refuse_mixed
from tritensor.ops.table.shape_rules import sized_dim as sized_dim
