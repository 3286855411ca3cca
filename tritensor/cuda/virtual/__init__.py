"""Devices that are not there: launches are recorded so that kernels can be compiled anywhere, memory reads as zeros."""
