"""Same values: of calls that were repeated, those of the path's records that their results stand for."""

from __future__ import annotations

from copy import copy
from typing import Any

from tritensor.fusion.graph import Call, Value, Window


class SameValues(dict[Value, Value]):
    """For values of calls that were repeated, those that stand in the records."""

    def told(self, call: Call) -> Call:
        """A call as the path has it: on the values that its records have made."""
        if not self:
            return call
        told = copy(call)
        told.inputs = self.of(call.inputs)
        if call.kernels:
            told.kernels = tuple([(k, self.of(given), picks) for k, given, picks in call.kernels])
        for value in call.results:
            if value is not None:
                value.call = told
        return told

    def of(self, x: Any) -> Any:
        """What stands in the records for a value, and for those that a window or a tuple holds."""
        if type(x) is Value:
            return self.get(x, x)
        if type(x) is Window:
            return x._replace(value=self.of(x.value))
        return tuple([self.of(y) for y in x]) if type(x) is tuple else x
