"""`ddpdoctor run`: starts the user's own command as it is, and follows the ranks that come of it.

The doctor is a prefix: descriptors, terminal, process group, signals and exit status are the job's
own. If the doctor dies, the job goes on unwatched; if a deadlock is proven, the doctor ends it.
"""
