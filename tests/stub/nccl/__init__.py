"""A stub of NCCL beside the stub driver: calls noted, checked, made to fail. Nothing is sent."""
