"""PyTorch's path of what its loader is made of, as far as scripts take something from there."""

from tritensor.utils.data._utils import collate as collate
from tritensor.utils.data._utils import pin_memory as pin_memory
from tritensor.utils.data._utils import worker as worker
