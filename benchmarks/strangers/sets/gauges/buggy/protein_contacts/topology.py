"""Process layout: consecutive processes form a replica, one replica for each protein family."""
import torch.distributed as dist


class Layout:
    def __init__(self, per_family):
        world = dist.get_world_size()
        assert world % per_family == 0
        self.rank = dist.get_rank()
        self.group = None
        for first in range(0, world, per_family):
            members = list(range(first, first + per_family))
            group = dist.new_group(members)
            if self.rank in members:
                self.group = group
                self.family = first // per_family
        self.families = world // per_family

    @property
    def local(self):
        return dist.get_rank(self.group)

    @property
    def size(self):
        return dist.get_world_size(self.group)
