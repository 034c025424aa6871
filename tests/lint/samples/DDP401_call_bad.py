import torch.distributed as dist


class Trainer:
    def __init__(self, rank):
        self.rank = rank

    def sync(self):
        dist.barrier()

    def finish(self):
        self.sync()

    def is_boss(self):
        return self.rank == 0

    def run(self):
        if self.is_boss():
            self.finish()  # <-- DDP401
