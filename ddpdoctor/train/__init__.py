"""The commands that run the reference stack: what can be trained, and how its options are read.

The options are the fields of pydantic models of the stack, so that a command and the Python API
cannot come to differ; a new system is one line in `systems`.
"""
