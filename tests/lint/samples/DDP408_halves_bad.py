import torch
import torch.distributed as dist


class Halves:
    def __init__(self):
        dist.init_process_group("nccl")
        self.first = dist.get_rank() < 4
        if self.first:
            self.group = dist.new_group([0, 1, 2, 3])  # <-- DDP408
        else:
            self.group = dist.new_group([4, 5, 6, 7])

    def mean(self, value):
        value = torch.tensor([value], device="cuda")
        dist.all_reduce(value, group=self.group)
        return value.item() / 4


if __name__ == "__main__":
    print(Halves().mean(1.0))
