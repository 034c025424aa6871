import torch.distributed as dist


class Neighbours:
    """Each host averages by itself."""

    def __init__(self, per_host: int):
        host = dist.get_rank() // per_host
        mine = []
        for local in range(per_host):
            mine.append(host * per_host + local)
        self.own = dist.new_group(ranks=mine)  # <-- DDP408


dist.init_process_group("nccl")
Neighbours(8)
