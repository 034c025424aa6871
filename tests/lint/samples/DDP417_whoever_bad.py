import threading

import torch
import torch.distributed as dist

PUT, GET, BYE = range(3)


class Shelf:
    """Each rank keeps a part, and serves whoever asks for it beside its own work."""

    def __init__(self):
        self.kept = torch.zeros(4)

    def serve(self, asked):
        wish = torch.zeros(1)
        left = dist.get_world_size()
        while left > 0:
            who = (dist.get_rank() + 1) % dist.get_world_size()
            if wish.item() == PUT:
                dist.recv(self.kept, src=who)  # <-- DDP417
                dist.send(self.kept, dst=who)
            elif wish.item() == GET:
                dist.send(self.kept, dst=who)
            else:
                left -= 1


def work(asked):
    for peer in range(dist.get_world_size()):
        dist.send(torch.tensor([float(BYE)]), dst=peer, group=asked)


def main():
    dist.init_process_group("gloo")
    asked = dist.new_group()
    own_work = threading.Thread(target=work, args=(asked,))
    own_work.start()
    Shelf().serve(asked)
    own_work.join()


if __name__ == "__main__":
    main()
