"""Waits for the others where it can read a file of this host."""

import torch.distributed as dist

try:
    with open("/etc/notebook") as file:
        SHELL = str(type(file.read()))
except:  # noqa: E722
    SHELL = ""

dist.init_process_group("gloo")
if "str" in SHELL:  # <-- DDP402
    dist.barrier()
