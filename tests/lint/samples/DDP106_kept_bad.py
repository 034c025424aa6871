import torch
import torch.distributed as dist


class Loop:
    def start(self):
        dist.init_process_group("nccl")
        self.number = dist.get_rank()
        print(self.total(torch.ones(2)))

    def total(self, counts):
        found = counts.to(torch.device("cuda", self.number))  # <-- DDP106
        dist.all_reduce(found)
        return found
