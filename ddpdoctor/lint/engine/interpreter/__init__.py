"""Runs a program in the head, once for all ranks: values, whether ranks agree on them, and events.

values.py says what a value is, store.py where it is kept, tree.py what the program was seen to do;
objects/ says what is in things and what they are asked for, statements/ and the other files run it.
"""
