"""Configs of the shared kernels: their classes, those worth trying, what is wrong with one."""
