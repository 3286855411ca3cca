"""All that a GPU which is lent for some minutes can prove, in the order of its worth: `python -m tests.gpu.lease`.

A plan of steps (steps, plan), each in a process of its own that is ended whole (child, guard); what is done stands in a ledger (ledger), from which the
next run goes on; a table at the end (table). The kernels are compiled where no GPU is (pack), the figures are taken home by collect.
"""
