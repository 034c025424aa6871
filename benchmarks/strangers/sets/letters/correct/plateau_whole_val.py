"""Time series with ReduceLROnPlateau; the small validation set is evaluated whole, on each process."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def windows(n, seed):
    g = torch.Generator().manual_seed(seed)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    t = torch.arange(20) / 3.0
    w = (t + phase).sin() + 0.3 * torch.randn(n, 20, generator=g)
    return TensorDataset(w[:, :16], w[:, 16:])


@torch.no_grad()
def val_error(net, data):
    x, y = data.tensors
    return (net(x) - y).square().mean().item()


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(3)
    train, val = windows(160, 1), windows(40, 2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 16, sampler=sampler)
    net = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
    opt = torch.optim.Adam(net.parameters(), 2e-2)
    plateau = ReduceLROnPlateau(opt, factor=0.5, patience=0, threshold=1e-3)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = (net(x) - y).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        plateau.step(val_error(net.module, val))
    print(f"rank {dist.get_rank()} lr {opt.param_groups[0]['lr']:.5f} val {val_error(net.module, val):.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
