"""The op table and what calls of its ops rest on: arrays, transfers, recorded calls, configs."""
