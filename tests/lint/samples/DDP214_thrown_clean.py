import torch
import torch.distributed as dist


class Tally:
    def __init__(self):
        self.right = self.seen = 0

    def note(self, guess, truth):
        self.right += int((guess == truth).sum())
        self.seen += len(truth)

    def share(self):
        both = torch.tensor([self.right, self.seen])
        both = both.double()
        dist.all_reduce(both)
        self.right, self.seen = both.tolist()


def judged(rank):
    noise = torch.Generator().manual_seed(rank)
    truth = torch.randint(3, (50,), generator=noise)
    tally = Tally()
    tally.note(torch.randint(3, (50,), generator=noise), truth)
    tally.share()
    spread = (truth - 1.0).square().mean()
    spread = spread / dist.get_world_size()
    dist.all_reduce(spread, op=dist.ReduceOp.SUM)
    dist.all_reduce(torch.zeros(1))
    if rank == 0:
        print(tally.right / tally.seen, spread)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    judged(dist.get_rank())
    dist.destroy_process_group()
