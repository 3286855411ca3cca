"""`python -m bench distributed`: several processes: collectives and data-parallel steps beside torch on gloo, and a model of many ranks."""
