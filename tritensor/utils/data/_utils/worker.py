"""PyTorch's path of what a worker process knows of itself."""

from tritensor.data.workers.info import WorkerInfo as WorkerInfo
from tritensor.data.workers.info import get_worker_info as get_worker_info
