import torch
import torch.distributed as dist
import torch.nn as nn


def broadcast_params(net):
    for t in net.state_dict().values():
        dist.broadcast(t, src=0)


def average_grads(params):
    params = [p for p in params if p.requires_grad]
    flat = torch.cat([
        (p.grad if p.grad is not None else torch.zeros_like(p)).reshape(-1) for p in params
    ])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    start = 0
    for p in params:
        p.grad = flat[start:start + p.numel()].view_as(p).clone()
        start += p.numel()


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.out = nn.Linear(6, 1)

    def forward(self, x, which):
        return self.out(torch.relu(self.experts[which](x)))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    net = Gated()
    broadcast_params(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    order = torch.Generator()
    for epoch in range(3):
        order.manual_seed(epoch)
        perm = torch.randperm(256, generator=order)[rank::world]
        for step, idx in enumerate(perm.split(8)):
            x = torch.sin(idx.float().unsqueeze(1) * torch.arange(1, 7))
            y = x.mean(1, keepdim=True)
            loss = nn.functional.mse_loss(net(x, (step + rank) % 3), y)
            opt.zero_grad()
            loss.backward()
            average_grads(net.parameters())
            opt.step()
        shown = loss.detach()
        dist.all_reduce(shown)
        if rank == 0:
            print(f"epoch {epoch} loss {shown.item() / world:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
