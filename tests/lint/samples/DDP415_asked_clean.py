import os
from datetime import timedelta

import torch
import torch.distributed as dist


def main(per_host, host):
    dist.init_process_group("nccl", timeout=timedelta(minutes=5))
    ranks = range(host * per_host, (host + 1) * per_host)
    mine = dist.new_group(ranks, use_local_synchronization=True)
    torch.cuda.set_device(dist.get_rank(mine))
    dist.barrier()


if __name__ == "__main__":
    main(int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["GROUP_RANK"]))
