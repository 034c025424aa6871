"""ddpdoctor: why does my PyTorch DistributedDataParallel training hang, crash or go wrong?"""

__version__ = "0.1.0"
