"""The order of work on GPUs: streams, events, captures and graphs, hidden waits."""
