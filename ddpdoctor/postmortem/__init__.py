"""What can still be told of a job that is over: from its run directory, dumps or plain log.

Whatever was left becomes `Evidence`, and the same detectors decide as while a job runs. Nothing
that is read here is executed.
"""
