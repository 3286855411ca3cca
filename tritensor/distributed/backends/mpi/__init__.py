"""MPI, through mpi4py: collectives over memory of the CPU without a copy."""

from tritensor.distributed.backends.mpi.backend import MpiBackend as MpiBackend
from tritensor.distributed.backends.mpi.world import join_world as join_world
