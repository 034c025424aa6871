import os
import sys

import torch
import torch.distributed as dist


class Board:
    def close(self, losses):
        print(losses)


class Silence:
    def close(self, losses):
        pass


def wait():
    dist.barrier()


def go_on():
    pass


def run(ending):
    ending()


def main():
    dist.init_process_group("gloo")
    chief = dist.get_rank() == 0
    beginning = wait if "--wait" in sys.argv else go_on
    pause = go_on
    if "--pause" in sys.argv:
        pause = wait
    make = os.makedirs if chief else print
    make("boards")
    pause()
    beginning()
    board = Board() if chief else Silence()
    dist.all_reduce(torch.zeros(1))
    board.close(torch.zeros(1))
    run(beginning)


main()
