"""Lives inside a rank and writes down what happened, for whoever reads the run directory.

It imports `evidence` and nothing else of the package. It raises nothing into the job, prints
nothing into it and adds no collective. Everything it learns goes through one `Log`, one line an
event, so that what was written before a SIGKILL is readable.

A process listens from the moment it has imported torch, and begins to write when it turns out to be
a rank: when it joins a process group, or ends without having done so.
"""
