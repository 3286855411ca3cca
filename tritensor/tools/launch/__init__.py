"""The launcher: ranks through mpiexec, the first failure among them reported; imports nothing of the rest."""
