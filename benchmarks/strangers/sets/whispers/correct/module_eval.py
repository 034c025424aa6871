"""Rank 0 evaluates the bare module between epochs while the others wait."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(9, 32), nn.LayerNorm(32), nn.GELU())
        self.classifier = nn.Linear(32, 3)

    def encode(self, x):
        return self.encoder(x)

    def forward(self, x):
        return self.classifier(self.encode(x))


def samples(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 9, generator=g)
    return x, x[:, :3].argmax(1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(Net())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    x, y = samples(256, rank)
    best, best_state = 0.0, None
    for epoch in range(5):
        for i in torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch)).split(32):
            loss = nn.functional.cross_entropy(model(x[i]), y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            net = model.module
            with torch.no_grad():
                vx, vy = samples(300, 1234)
                feats = net.encode(vx)
                acc = (net.classifier(feats).argmax(1) == vy).float().mean().item()
            if acc > best:
                best, best_state = acc, {k: v.clone() for k, v in net.state_dict().items()}
            print(f"epoch {epoch} accuracy {acc:.3f} best {best:.3f}", flush=True)
        dist.barrier()
    if rank == 0:
        torch.save(best_state, "best.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
