"""The doctors of a job on several hosts: how they meet, what they tell each other, what it proves.

Each host has a doctor of its own. The one that has rank 0 is the first: it hosts a store of torch's
own kind (`courier`, a process apart), takes in what the others tell of their ranks (`company`),
and asks in rounds who waits (`rounds`). Nothing of this is loaded for a job on one host.
"""
