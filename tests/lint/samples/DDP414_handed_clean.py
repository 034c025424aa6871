import torch.distributed as dist


class Totals:
    """Sums over all ranks; nobody asks it not to wait."""

    def __init__(self, pending):
        self.pending = pending

    def reduce(self, tensor, later=False):
        dist.all_reduce(tensor, async_op=later)
        return tensor

    def flush(self):
        for each in self.pending:
            self.reduce(each)


def gather(parts, tensor, later=False):
    dist.all_gather(parts, tensor, async_op=later)
    return parts


if __name__ == "__main__":
    import torch

    dist.init_process_group("gloo")
    Totals([torch.ones(1)]).flush()
