"""Elements picked and put by position."""

from tritensor.tensor.functions.indexing import picking as picking
