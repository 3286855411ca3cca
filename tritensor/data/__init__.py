"""Data: datasets, samplers, and the loader that turns them into batches."""

from tritensor.data.collate import default_collate as default_collate
from tritensor.data.collate import default_convert as default_convert
from tritensor.data.dataset import ChainDataset as ChainDataset
from tritensor.data.dataset import ConcatDataset as ConcatDataset
from tritensor.data.dataset import Dataset as Dataset
from tritensor.data.dataset import IterableDataset as IterableDataset
from tritensor.data.dataset import StackDataset as StackDataset
from tritensor.data.dataset import Subset as Subset
from tritensor.data.dataset import TensorDataset as TensorDataset
from tritensor.data.dataset import random_split as random_split
from tritensor.data.distributed import DistributedSampler as DistributedSampler
from tritensor.data.length_buckets import LengthBucketSampler as LengthBucketSampler
from tritensor.data.loader import DataLoader as DataLoader
from tritensor.data.sampler import BatchSampler as BatchSampler
from tritensor.data.sampler import RandomSampler as RandomSampler
from tritensor.data.sampler import Sampler as Sampler
from tritensor.data.sampler import SequentialSampler as SequentialSampler
from tritensor.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from tritensor.data.sampler import WeightedRandomSampler as WeightedRandomSampler
from tritensor.data.workers.info import get_worker_info as get_worker_info
