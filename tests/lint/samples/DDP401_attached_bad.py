"""What listens to the end of a round is attached on one rank, and one listener gathers."""

from collections import defaultdict

import torch
import torch.distributed as dist


class Rounds:
    def __init__(self):
        self.listeners = defaultdict(list)

    def listen(self, moment, listener):
        self.listeners[moment].append(listener)

    def tell(self, moment):
        for listener in self.listeners[moment]:
            listener.heard(self)


class Yields:
    def __init__(self):
        self.seen = torch.zeros(3)

    def heard(self, rounds):
        dist.all_reduce(self.seen)


class Diary:
    def heard(self, rounds):
        print("a round is over")


def main():
    dist.init_process_group("gloo")
    rounds = Rounds()
    for listener in (Yields(), Diary()):
        if dist.get_rank() == 0:  # <-- DDP401
            rounds.listen("end", listener)
    for _ in range(5):
        rounds.tell("end")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
