"""PyTorch's path of its loader's parts, as far as scripts import them."""

from tritensor.utils.data._utils import collate as collate
from tritensor.utils.data._utils import pin_memory as pin_memory
from tritensor.utils.data._utils import worker as worker
