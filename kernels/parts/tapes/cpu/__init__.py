"""Tapes on the CPU: how arrays lie over a space, the machine code of a tape, and its steps one at a time in numpy."""
