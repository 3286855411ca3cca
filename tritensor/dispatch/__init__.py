"""Dispatch: the one road of an op (road), what it leaves in the graph (nodes), and the fast lanes beside it (lanes)."""

from tritensor.dispatch.dispatcher import apply as apply
from tritensor.dispatch.dispatcher import install as install
from tritensor.dispatch.fast_paths import binary_lane as binary_lane
from tritensor.dispatch.fast_paths import takes_floats as takes_floats
from tritensor.dispatch.nodes import record_node as record_node
