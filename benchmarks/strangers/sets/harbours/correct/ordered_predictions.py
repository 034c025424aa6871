"""Per-item predictions in data set order: gathered parts are interleaved again and the padding is cut off."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def items(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 9, generator=g)
    return TensorDataset(x, x @ torch.linspace(-1, 1, 9))


@torch.no_grad()
def predict_all(model, data, batch):
    loader = DataLoader(data, batch, sampler=DistributedSampler(data, shuffle=False))
    mine = torch.cat([model(x).squeeze(1) for x, _ in loader])
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    return torch.stack(parts, dim=1).flatten()[:len(data)]


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Linear(9, 1)
    model = DDP(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    train, test = items(160, 0), items(37, 1)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 10, sampler=sampler)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        pred = predict_all(model, test, 8)
        truth = test.tensors[1]
        if rank == 0:
            print(f"epoch {epoch} test mse {(pred - truth).pow(2).mean():.5f} over {len(pred)} items", flush=True)
    with torch.no_grad():
        assert torch.allclose(pred, net(test.tensors[0]).squeeze(1), atol=1e-5)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
