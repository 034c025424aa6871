import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import SignaturePairs
from model import Embedder, contrastive_loss


def train_step(net, optimizer, a, b, same):
    z, margin = net(torch.cat([a, b]))
    za, zb = z.chunk(2)
    loss = contrastive_loss(za, zb, same, margin)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def verify(net, loader):
    net.eval()
    hit = torch.zeros(2)
    threshold = net.module.margin() / 2
    for a, b, same in loader:
        d = (net.module(a)[0] - net.module(b)[0]).norm(dim=1)
        hit += torch.tensor([((d < threshold) == same.bool()).sum().item(), len(a)])
    dist.all_reduce(hit)
    net.train()
    return (hit[0] / hit[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(21)

    train_set, test_set = SignaturePairs(192, seed=1), SignaturePairs(64, seed=2)
    sampler = DistributedSampler(train_set, shuffle=True, drop_last=True)
    loader = DataLoader(train_set, batch_size=16, sampler=sampler, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=16, sampler=DistributedSampler(test_set, shuffle=False))

    net = DDP(Embedder(), find_unused_parameters=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        running = torch.zeros(1)
        for a, b, same in loader:
            running += train_step(net, optimizer, a, b, same)
        dist.all_reduce(running)
        acc = verify(net, test_loader)
        if rank == 0:
            mean = running.item() / (len(loader) * dist.get_world_size())
            print(f"epoch {epoch} loss {mean:.4f} verification acc {acc:.3f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
