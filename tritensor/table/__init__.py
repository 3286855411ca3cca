"""The op table: the record of an op with its four corners, registration that checks the whole record, and look-up by name."""

from tritensor.table.lookup import Ops as Ops
from tritensor.table.lookup import ops as ops
from tritensor.table.lookup import proven as proven
from tritensor.table.lookup import registry as registry
from tritensor.table.record import FLOATS as FLOATS
from tritensor.table.record import INTS as INTS
from tritensor.table.record import Op as Op
from tritensor.table.record import Partials as Partials
from tritensor.table.record import Sample as Sample
from tritensor.table.record import Spec as Spec
from tritensor.table.record import Work as Work
from tritensor.table.registration import op as op
from tritensor.table.registration import restore as restore
from tritensor.table.shape_rules import broadcast as broadcast
from tritensor.table.shape_rules import normal_dim as normal_dim
from tritensor.table.shape_rules import normal_dims as normal_dims
from tritensor.table.shape_rules import refuse_kind as refuse_kind
from tritensor.table.shape_rules import refuse_mixed as refuse_mixed
from tritensor.table.shape_rules import sized_dim as sized_dim
