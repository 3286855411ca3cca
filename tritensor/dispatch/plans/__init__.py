"""Plans: the second call of a function with tensors that lie the same way goes from a key to what it came to before, and touches no more Python than that.

A call is learnt by its door (doors.py): it runs as ever while a recorder writes down the ops that it comes to (recorder.py), once with the tensors given and
once with tensors on device meta, which have no values. Where both are the same, the ops are a function of layouts, types and attributes alone, and are
written as a straight line of Python (text.py) that later calls with the same key run: arrays to numpy or to a recording of a GPU, a tensor around each
result, its node. Whatever goes wrong in a plan, the call goes the long way, which says what. Nothing is planned that draws
by another generator than the default one, warns, reports, or reads values.
"""

from tritensor.dispatch.plans.doors import Door as Door
from tritensor.dispatch.plans.doors import forget as forget
