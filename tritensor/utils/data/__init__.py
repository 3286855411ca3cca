"""PyTorch's spelling of `tritensor.data`."""

from tritensor.data import BatchSampler as BatchSampler
from tritensor.data import ChainDataset as ChainDataset
from tritensor.data import ConcatDataset as ConcatDataset
from tritensor.data import DataLoader as DataLoader
from tritensor.data import Dataset as Dataset
from tritensor.data import DistributedSampler as DistributedSampler
from tritensor.data import IterableDataset as IterableDataset
from tritensor.data import LengthBucketSampler as LengthBucketSampler
from tritensor.data import RandomSampler as RandomSampler
from tritensor.data import Sampler as Sampler
from tritensor.data import SequentialSampler as SequentialSampler
from tritensor.data import StackDataset as StackDataset
from tritensor.data import Subset as Subset
from tritensor.data import SubsetRandomSampler as SubsetRandomSampler
from tritensor.data import TensorDataset as TensorDataset
from tritensor.data import WeightedRandomSampler as WeightedRandomSampler
from tritensor.data import default_collate as default_collate
from tritensor.data import default_convert as default_convert
from tritensor.data import get_worker_info as get_worker_info
from tritensor.data import random_split as random_split
from tritensor.utils.data import _utils as _utils
