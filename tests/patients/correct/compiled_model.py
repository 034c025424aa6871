# style: torch.compile around the wrapper, eager backend, evaluation between epochs
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build():
    torch.manual_seed(9)
    net = nn.Sequential(nn.Linear(7, 14), nn.GELU(), nn.LayerNorm(14), nn.Linear(14, 3))
    return torch.compile(DDP(net), backend="eager")


def batches(rank, epoch, count=5):
    generator = torch.Generator().manual_seed(1_000 * epoch + rank)
    for _ in range(count):
        x = torch.randn(8, 7, generator=generator)
        yield x, x[:, :3].argmax(dim=1)


@torch.no_grad()
def accuracy(model, rank):
    model.eval()
    counts = torch.zeros(2, dtype=torch.long)
    for x, y in batches(rank, epoch=99, count=2):
        counts += torch.tensor([int((model(x).argmax(dim=1) == y).sum()), len(y)])
    dist.all_reduce(counts)
    model.train()
    return (counts[0] / counts[1]).item()


def train(epochs=2):
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rank = dist.get_rank()
    for epoch in range(epochs):
        for x, y in batches(rank, epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        score = accuracy(model, rank)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {score:.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
