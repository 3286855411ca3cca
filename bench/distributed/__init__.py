"""Several processes, `python -m bench distributed`: collectives and data-parallel steps beside torch on gloo, a model of many ranks."""
