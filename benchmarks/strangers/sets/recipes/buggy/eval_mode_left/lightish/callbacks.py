import torch
import torch.distributed as dist

from .module import toy


class BestKeeper:
    """Rank 0 scores the model and keeps the best weights in memory."""

    def __init__(self):
        self.best, self.weights = float("inf"), None

    @torch.no_grad()
    def on_epoch_end(self, loop):
        if dist.get_rank() != 0:
            return
        net = loop.model.module
        net.eval()
        x, y = toy(4321)
        score = (net(x) - y).pow(2).mean().item()
        print(f"epoch {loop.epoch} val {score:.4f}", flush=True)
        if score >= self.best:
            return
        self.best = score
        self.weights = {k: v.clone() for k, v in net.state_dict().items()}
        loop.on_new_best(score)
