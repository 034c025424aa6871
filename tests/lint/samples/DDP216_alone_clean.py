"""A schedule beside the notes that one rank takes: two optimizers, one of them on all ranks."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ExponentialLR


class Duel:
    def __init__(self, rank, maker, judge):
        self.rank = rank
        self.maker = DistributedDataParallel(maker)
        self.judge = DistributedDataParallel(judge)
        self.of_maker = torch.optim.AdamW(self.maker.parameters())
        self.of_judge = torch.optim.AdamW(self.judge.parameters())
        self.pace_of_maker = ExponentialLR(self.of_maker, gamma=0.99)
        self.pace_of_judge = ExponentialLR(self.of_judge, gamma=0.99)

    def rounds(self, batches):
        for batch in batches:
            self.of_judge.zero_grad()
            self.judge(batch).mean().backward()
            self.of_judge.step()
            self.of_maker.zero_grad()
            self.maker(batch).mean().backward()
            self.of_maker.step()

    def note(self, epoch):
        print("epoch", epoch, "at", self.pace_of_maker.get_last_lr())

    def run(self, batches):
        for epoch in range(9):
            self.rounds(batches)
            if self.rank == 0:
                self.note(epoch)
            self.pace_of_maker.step()
            self.pace_of_judge.step()


def main(maker, judge, batches):
    dist.init_process_group("gloo")
    Duel(dist.get_rank(), maker, judge).run(batches)
