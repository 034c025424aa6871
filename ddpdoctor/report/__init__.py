"""Reports: one model of what a command has found, and one renderer per format.

The renderers are pure functions of the model. They look at no clock and at no machine, and know no
command: what a command tells differently, it says in the model.
"""
