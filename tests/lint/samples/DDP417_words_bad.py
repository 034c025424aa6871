import torch
import torch.distributed as dist
from torch.distributed import recv, send


class Ring:
    def __init__(self):
        dist.init_process_group("gloo")
        number, size = dist.get_rank(), dist.get_world_size()
        self.after, self.before = (number + 1) % size, (number - 1) % size

    def give(self, x):
        send(x, self.after)  # <-- DDP417

    def turn(self, x, rounds):
        for _ in range(rounds):
            self.give(x)
            recv(x, self.before)
        return x


if __name__ == "__main__":
    print(Ring().turn(torch.ones(3), 4))
