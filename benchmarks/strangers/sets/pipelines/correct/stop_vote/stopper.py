import torch.distributed as dist


class Plateau:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def _local(self, value):
        if value < self.best - 1e-3:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience

    def __call__(self, value):
        verdict = [None]
        if dist.get_rank() == 0:
            verdict = [self._local(value)]
        dist.broadcast_object_list(verdict, src=0)
        return verdict[0]
