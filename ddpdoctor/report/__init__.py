"""Reports: one model of what `check` found, and one renderer per format.

The renderers are pure functions of the model. They look at no clock, no catalogue and no machine,
so that a report that was saved as JSON can be read back and shown in any other form.
"""
