"""Known paths: a program that does again what it did before is followed call by call, and its calls are not noted anew.

The first time a segment's calls are noted, the public functions that made them are noted too (recording.py), each as a Record of what it was given and what
it gave (records.py). The next time a cursor (cursor.py) goes from record to record: a function that is given the same objects hands out the tensor that its
record holds, a FreshTensor (fresh.py) that has a shape and no array, and runs nothing. Where Python goes another way, what has been passed over is called
after all, and from there on a branch is recorded. So nothing has to be guarded: Python decides every time.
"""
