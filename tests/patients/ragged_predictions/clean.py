# style: functions, prediction gathering
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_part(rank, count, seed=0):
    generator = torch.Generator().manual_seed(seed + rank)
    x = torch.randn(count, 5, generator=generator)
    return x, (x.sum(1) > 0).float()


def fit(model, x, y, epochs=2, batch_size=8):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for start in range(0, len(x), batch_size):
            logits = model(x[start : start + batch_size]).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(
                logits, y[start : start + batch_size]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def collect(predictions):
    world_size = dist.get_world_size()
    parts = [None] * world_size
    dist.all_gather_object(parts, predictions)
    return torch.cat(parts)


@torch.no_grad()
def predict(model, x):
    model.eval()
    return model.module(x).squeeze(1).sigmoid()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    model = DDP(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)))
    x, y = make_part(rank, 32)
    fit(model, x, y)
    test_x, _ = make_part(rank, 21 - rank, seed=50)
    everything = collect(predict(model, test_x))
    if rank == 0:
        print(f"{len(everything)} predictions, mean {everything.mean():.3f}")
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
