import torch
import torch.distributed as dist


class KVMeter:
    """Running sums on every worker, merged when the line is written."""

    def __init__(self, *keys):
        self.keys = keys
        self.totals = torch.zeros(len(keys), dtype=torch.float64)

    def add(self, **values):
        for i, k in enumerate(self.keys):
            self.totals[i] += float(values[k])

    def merged(self):
        totals = self.totals
        dist.all_reduce(totals)
        return dict(zip(self.keys, totals.tolist()))
