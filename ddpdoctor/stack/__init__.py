"""The reference training stack: DistributedDataParallel done right, readable top to bottom.

It imports nothing of the rest of ddpdoctor, so its files can be copied into a project as they are.
"""
