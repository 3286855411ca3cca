"""Overriding: classes and modes that take calls over by `__torch_function__` (protocol), and how calls come to them (interception)."""
