"""Callbacks that begin to watch a training, for trainers that start their ranks themselves.

Nothing is imported here: each file imports its library. What has no callbacks, as accelerate, needs
the line that these consist of, `ddpdoctor.watch.start()`.
"""
