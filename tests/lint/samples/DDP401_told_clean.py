import torch
import torch.distributed as dist


class Average:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, value, n=1):
        self.total += value * n
        self.n += n

    @property
    def over_all(self):
        both = torch.tensor([self.total, self.n])
        dist.all_reduce(both)
        return (both[0] / both[1]).item()

    def __str__(self):
        return "{now:.3f}".format(now=self.over_all)


class Board:
    def __init__(self):
        self.kept = {"loss": Average()}

    def __repr__(self):
        return ", ".join(f"{key} {each}" for key, each in self.kept.items())


def train(losses):
    board = Board()
    rank = dist.get_rank()
    for step, loss in enumerate(losses):
        board.kept["loss"].add(loss)
        if step % 10 == 0:
            line = "step %d: %s" % (step, board)
            if rank == 0:
                print(line)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train([1.0, 2.0, 3.0])
    dist.destroy_process_group()
