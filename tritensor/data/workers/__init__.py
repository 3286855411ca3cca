"""Worker processes of a DataLoader: started, fed with indices, watched, and ended; their batches come by shared memory."""
