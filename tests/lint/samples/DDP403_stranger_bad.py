import torch
import torch.distributed as dist
from torch import nn

LAYOUT = {"judge": [0], "learners": [1, 2]}


class Crew:
    def __init__(self, name, members, link):
        self.name, self.members, self.link = name, members, link

    def hand_out(self, net):
        for each in net.parameters():
            dist.broadcast(each.data, src=0, group=self.link)  # <-- DDP403


def crews():
    for name, members in LAYOUT.items():
        yield Crew(name, members, dist.new_group(members))


def main():
    dist.init_process_group("gloo")
    mine = [crew for crew in crews() if dist.get_rank() in crew.members]
    net = nn.Linear(4, 1)
    for crew in mine:
        crew.hand_out(net)
    odd = dist.new_group([1, 3])
    if dist.get_rank() % 2 == 1:
        dist.reduce(torch.ones(2), dst=1, group=odd)
        dist.reduce(torch.ones(2), dst=2, group=odd)  # <-- DDP403


main()
