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
            dist.broadcast(state, stage, group=self.mine)  # <-- DDP403
        return state


def my_group(size):
    found = None
    for number in range(dist.get_world_size() // size):
        group = dist.new_group([number * size + each for each in range(size)])
        if dist.get_rank() // size == number:
            found = group
    return found


def share(values):
    group = my_group(2)
    dist.broadcast(values, src=0, group=group)  # <-- DDP403
    return values


def main():
    dist.init_process_group("gloo")
    share(Pipes(2).hand_on(torch.zeros(4), 2))
    dist.destroy_process_group()


main()
