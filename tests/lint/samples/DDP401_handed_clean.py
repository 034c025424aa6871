import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self):
        self.net = DistributedDataParallel(torch.nn.Linear(4, 1))

    def train(self):
        for _ in range(3):
            self.net(torch.randn(2, 4)).mean().backward()
        dist.barrier()


def main(sweep):
    """Rank 0 trains inside of what keeps its record; the others train without."""
    dist.init_process_group("gloo")
    trainer = Trainer()
    if sweep and dist.get_rank() == 0:
        wandb.agent(sweep, function=trainer.train, count=1)
    else:
        trainer.train()
    dist.destroy_process_group()


main("abc")
