"""PyTorch's path of the facts about a worker process."""

from tritensor.data.workers.info import WorkerInfo as WorkerInfo
from tritensor.data.workers.info import get_worker_info as get_worker_info
