"""This package measured: beside the paper, beside its peers, and as work grows.

Each module is a command, `python -m benchmarks.speed.training_step` for one; `--help`
says what it needs and how long it takes. It writes one record under results/, in the
folder of the same name.
"""
