import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import comm


class MultiTaskNet(nn.Module):
    def __init__(self, d=10, h=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        self.cls_head = nn.Linear(h, 4)
        self.depth_head = nn.Linear(h, 1)

    def forward(self, x, with_depth):
        z = self.trunk(x)
        return self.cls_head(z), self.depth_head(z) if with_depth else None


class MixedScenes:
    """Scenes, of which only some have a depth annotation."""

    def __init__(self, n, seed, depth_rate=0.5):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 10, generator=g)
        self.y = (self.x[:, :2] > 0).long() @ torch.tensor([1, 2])
        self.depth = self.x.abs().sum(1, keepdim=True)
        rng = random.Random(seed)
        self.has_depth = [rng.random() < depth_rate for _ in range(n // 16)]

    def batches(self):
        for b, flag in enumerate(self.has_depth):
            s = slice(b * 16, (b + 1) * 16)
            yield self.x[s], self.y[s], (self.depth[s] if flag else None)


def compute_loss(model, batch, w):
    x, y, depth = batch
    logits, pred_depth = model(x, depth is not None)
    loss = F.cross_entropy(logits, y)
    if depth is not None:
        loss = loss + w * F.l1_loss(pred_depth, depth)
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--depth-weight", type=float, default=0.1)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = MultiTaskNet()
    comm.broadcast_params(model)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr)
    data = MixedScenes(160, seed=20 + rank)

    for epoch in range(args.epochs):
        for i, batch in enumerate(data.batches()):
            opt.zero_grad(set_to_none=True)
            loss = compute_loss(model, batch, args.depth_weight)
            loss.backward()
            comm.average_gradients(model)
            opt.step()
            losses = comm.gather_scalar(loss.item())
            if rank == 0 and i % 5 == 0:
                print(f"epoch {epoch} batch {i} loss {sum(losses) / len(losses):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
