"""ddpdoctor finds out why DistributedDataParallel training hangs, crashes or goes wrong."""

__version__ = "0.1.0"
