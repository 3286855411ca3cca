"""Pictures: the graph behind a result as DOT and SVG, a model's layers as a table. Nothing but Python is needed."""

from tritensor.viz.graph import make_dot as make_dot
from tritensor.viz.picture import Picture as Picture
from tritensor.viz.table import summary as summary

__all__ = ["Picture", "make_dot", "summary"]
