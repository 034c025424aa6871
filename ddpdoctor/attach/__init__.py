"""`ddpdoctor attach`: a job that hangs, and was not started under the doctor.

Looks from outside: nothing is loaded into the ranks, no signal is sent, nothing is ended. Stacks
alone prove nothing, so whatever is said here is evidence.
"""
