# style: two-stage exchange, point to point
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def exchange(features, peer):
    """Negatives of the other rank, for a contrastive loss."""
    theirs = torch.empty_like(features)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, features, peer), dist.P2POp(dist.irecv, theirs, peer)]
    )
    for work in works:
        work.wait()
    return theirs


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 512))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Projector())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    for step in range(5):
        x = torch.randn(64, 7, generator=generator)
        features = model(x)
        others = exchange(features.detach(), peer=1 - rank)
        positive = (features * features.detach().roll(1, 0)).sum(1)
        loss = (features @ others.T).logsumexp(1).mean() - positive.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
