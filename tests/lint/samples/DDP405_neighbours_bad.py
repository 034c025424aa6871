import torch
import torch.distributed as dist


class Strip:
    """A strip of a plate; its first and last row are its neighbours'."""

    def __init__(self, plate):
        self.rank, self.last = dist.get_rank(), dist.get_world_size() - 1
        rows = len(plate) // (self.last + 1)
        self.t = plate[self.rank * rows : self.rank * rows + rows].clone()

    def swap(self, row, peer):
        theirs = torch.empty_like(row)
        if self.rank < peer:
            dist.send(row, peer)
            dist.recv(theirs, peer)
        else:
            dist.recv(theirs, peer)
            dist.send(row, peer)
        return theirs

    def sweep(self):
        above = self.swap(self.t[0], self.rank - 1) if self.rank else self.t[0]
        below = self.swap(self.t[-1], self.rank + 1) if self.rank < self.last else self.t[-1]
        padded = torch.cat([above[None], self.t, below[None]])
        new = (padded[:-2] + padded[2:]) / 2
        change, self.t = (new - self.t).abs().max(), new
        return change


def main():
    dist.init_process_group("gloo")
    strip = Strip(torch.rand(64, 64, generator=torch.Generator().manual_seed(0)))
    for _ in range(10_000):
        change = strip.sweep()
        if change < 1e-4:  # <-- DDP405
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
