"""Local SGD: eight steps on the own data, then the weights (and the momentum) of all workers are averaged."""
import torch
import torch.distributed as dist
import torch.nn as nn

PERIOD = 8


@torch.no_grad()
def average_state(net, opt):
    world = dist.get_world_size()
    tensors = [p.data for p in net.parameters()]
    tensors += [s["momentum_buffer"] for s in opt.state.values() if s.get("momentum_buffer") is not None]
    flat = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(flat)
    flat /= world
    for t, part in zip(tensors, flat.split([t.numel() for t in tensors])):
        t.copy_(part.view_as(t))


def sensors(rank, n=400):
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(n, 7, generator=g)
    return x, torch.sin(x[:, :2].sum(1, keepdim=True))


def main(steps=64, batch=20):
    rank = dist.get_rank()
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(7, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.8)
    x, y = sensors(rank)
    g = torch.Generator().manual_seed(90 + rank)
    for step in range(1, steps + 1):
        i = torch.randint(0, len(x), (batch,), generator=g)
        loss = nn.functional.mse_loss(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % PERIOD == 0:
            average_state(net, opt)
            if rank == 0:
                print(f"round {step // PERIOD} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
