"""DistributedDataParallel: every process computes a part of the batch, and their gradients are averaged while backward runs."""

from tritensor.distributed.data_parallel.buckets import GradBucket as GradBucket
from tritensor.distributed.data_parallel.module import DistributedDataParallel as DistributedDataParallel
from tritensor.distributed.data_parallel.reducer import BucketTimes as BucketTimes
