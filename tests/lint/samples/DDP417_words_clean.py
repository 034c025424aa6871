import torch
import torch.distributed as dist
from torch.distributed import recv, send


class Ring:
    def __init__(self):
        dist.init_process_group("gloo")
        self.number, size = dist.get_rank(), dist.get_world_size()
        self.after, self.before = (self.number + 1) % size, (self.number - 1) % size

    def turn(self, x, rounds):
        for _ in range(rounds):
            if self.number == 0:
                send(x, self.after)
                recv(x, self.before)
            else:
                recv(x, self.before)
                send(x, self.after)
        return x


if __name__ == "__main__":
    print(Ring().turn(torch.ones(3), 4))
