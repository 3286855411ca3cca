"""PyTorch's path of Python's process pool, whose tasks and results carry tensors by shared memory."""

from multiprocessing.pool import Pool as Pool
from multiprocessing.queues import SimpleQueue as SimpleQueue
