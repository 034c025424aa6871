import torch.distributed as dist


class Neighbours:
    """Each host averages by itself."""

    def __init__(self, per_host: int):
        host = dist.get_rank() // per_host
        for other in range(dist.get_world_size() // per_host):
            members = []
            for local in range(per_host):
                members.append(other * per_host + local)
            group = dist.new_group(ranks=members)
            if other == host:
                self.own = group


dist.init_process_group("nccl")
Neighbours(8)
