"""The last rank is on no board, and does not come to the barrier."""

import torch
import torch.distributed as dist


class Board:
    def __init__(self, ranks):
        self.group = dist.new_group(ranks=ranks)
        self.is_mine = dist.get_rank() in ranks

    def post(self, value):
        if self.is_mine:
            dist.all_reduce(value, group=self.group)


def main():
    dist.init_process_group("gloo")
    board = Board(list(range(dist.get_world_size() - 1)))
    for loss in torch.rand(20):
        board.post(loss)
    if dist.get_rank() in range(dist.get_world_size() - 1):
        dist.barrier()  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
