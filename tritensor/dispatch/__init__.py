"""Dispatch: `apply`, which runs every op (dispatcher), its node in the graph (nodes), and the fast paths of the calls made most."""

from tritensor.dispatch.dispatcher import apply as apply
from tritensor.dispatch.dispatcher import install as install
from tritensor.dispatch.fast_paths import binary_path as binary_path
from tritensor.dispatch.fast_paths import takes_floats as takes_floats
from tritensor.dispatch.nodes import record_node as record_node
