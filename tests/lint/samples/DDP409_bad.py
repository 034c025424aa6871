import atexit

import torch.distributed as dist


def leave():
    dist.barrier()
    dist.destroy_process_group()


atexit.register(leave)  # <-- DDP409
atexit.register(dist.barrier)  # <-- DDP409
atexit.register(lambda: dist.barrier())  # <-- DDP409
