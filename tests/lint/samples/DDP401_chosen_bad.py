import sys

import torch
import torch.distributed as dist


class Board:
    def close(self, losses):
        dist.all_reduce(losses)
        print(losses)


class Silence:
    def close(self, losses):
        pass


def wait():
    dist.barrier()


def go_on():
    pass


def run(ending):
    ending()  # <-- DDP401


def main():
    dist.init_process_group("gloo")
    chief = dist.get_rank() == 0
    beginning = wait if chief else go_on
    pause = go_on
    if "--pause" in sys.argv:
        pause = wait
    pause()
    beginning()  # <-- DDP401
    board = Board() if chief else Silence()
    board.close(torch.zeros(1))  # <-- DDP401
    run(beginning)


main()
