"""Dispatch: `apply`, which runs every op (dispatcher), its node in the graph (nodes), and the plans of calls that were made before."""

from tritensor.dispatch.dispatcher import apply as apply
from tritensor.dispatch.dispatcher import install as install
from tritensor.dispatch.nodes import record_node as record_node
from tritensor.dispatch.op_calls import bind as bind
from tritensor.dispatch.op_calls import run_planned as run_planned
