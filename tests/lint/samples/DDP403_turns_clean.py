import torch
import torch.distributed as dist


class Pipes:
    def __init__(self, replicas):
        self.mine = None
        self.members = []
        for first in range(replicas):
            members = list(range(first, dist.get_world_size(), replicas))
            made = dist.new_group(members)
            if dist.get_rank() in members:
                self.mine, self.members = made, members

    def hand_on(self, state, stages):
        for stage in range(stages):
            dist.broadcast(state, dist.get_global_rank(self.mine, stage), group=self.mine)
        return state

    def among(self, state):
        for rank in range(dist.get_world_size()):
            if rank in self.members:
                dist.broadcast(state, rank, group=self.mine)
        return state


def front(size):
    """The first ranks alone have it."""
    members = list(range(size))
    group = dist.new_group(members)
    return group if dist.get_rank() in members else None


def share(values, size):
    group = front(size)
    if group is not None:
        dist.broadcast(values, src=0, group=group)
    return values


def main(size):
    dist.init_process_group("gloo")
    pipes = Pipes(2)
    share(pipes.among(pipes.hand_on(torch.zeros(4), 2)), size)
    for source in range(dist.get_world_size()):
        dist.broadcast(torch.zeros(4), source)
    dist.destroy_process_group()


main(int(input()))
