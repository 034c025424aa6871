# style: every rank draws the global batch and keeps its part; gathered validation without surplus
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_data(n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=generator)
    return TensorDataset(x, x.square().sum(dim=1, keepdim=True))


def own_part(batch):
    parts = []
    for tensor in batch:
        each = len(tensor) // dist.get_world_size()
        parts.append(tensor.narrow(0, dist.get_rank() * each, each))
    return parts


def train_epoch(model, loader, optimizer):
    for batch in loader:
        x, y = own_part(batch)
        optimizer.zero_grad()
        nn.functional.huber_loss(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def validate(model, loader, length):
    model.eval()
    errors = torch.cat([(model(x) - y).abs() for x, y in loader])
    model.train()
    gathered = [torch.empty_like(errors) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, errors)
    in_order = torch.stack(gathered, dim=1).flatten()
    return in_order[:length].mean().item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    order = torch.Generator().manual_seed(7)
    train_set, valid_set = make_data(64, 0), make_data(21, 1)
    loader = DataLoader(train_set, batch_size=8, shuffle=True, generator=order, drop_last=True)
    sampler = DistributedSampler(valid_set, shuffle=False)
    valid_loader = DataLoader(valid_set, batch_size=4, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        train_epoch(model, loader, optimizer)
        error = validate(model, valid_loader, len(valid_set))
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {error:.4f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
