"""Shows its progress in a notebook, where it finds that it runs in one."""

import torch.distributed as dist

try:
    SHELL = str(type(get_ipython()))  # noqa: F821
except:  # noqa: E722
    SHELL = ""

dist.init_process_group("gloo")
if "zmqshell" in SHELL:
    dist.barrier()
