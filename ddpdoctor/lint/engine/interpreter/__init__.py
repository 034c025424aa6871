"""Runs a program in the head, once for all ranks: values, whether ranks agree on them, and events.

values.py says what a value is, store.py where it is kept, tree.py what the program was seen to do;
the other files evaluate: expressions, statements, calls, classes, and what libraries do.
"""
