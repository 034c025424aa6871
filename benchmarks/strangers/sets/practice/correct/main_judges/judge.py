import copy

import torch
import torch.distributed as dist

from loop import sample


class Judge:
    """Rank 0 validates and decides, everyone else hears the decision."""

    def __init__(self, patience):
        self.patience, self.bad = patience, 0
        self.top, self.kept = -1.0, None

    def _decide(self, model, epoch):
        net = model.module
        net.eval()
        with torch.no_grad():
            x, y = sample(torch.Generator().manual_seed(5), 256)
            acc = (net(x).argmax(1) == y).float().mean().item()
        net.train()
        print(f"epoch {epoch} acc {acc:.3f}", flush=True)
        if acc > self.top:
            self.top, self.bad = acc, 0
            self.kept = copy.deepcopy(net.state_dict())
            return "keep"
        self.bad += 1
        return "stop" if self.bad >= self.patience else "go"

    def verdict(self, model, epoch):
        box = [None]
        if dist.get_rank() == 0:
            box[0] = self._decide(model, epoch)
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def best_weights(self):
        box = [self.kept]
        dist.broadcast_object_list(box, src=0)
        return box[0]
