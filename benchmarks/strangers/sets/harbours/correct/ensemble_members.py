"""Every process trains its own member of an ensemble on a bootstrap sample; only the predictions are averaged."""
import torch
import torch.distributed as dist
import torch.nn as nn


def table(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return x, (x[:, 0] - x[:, 1] * x[:, 2] > 0).long()


def fit_member(member, x, y, epochs=6):
    torch.manual_seed(1000 + member)
    net = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 2))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    boot = torch.randint(0, len(x), (len(x),))
    for _ in range(epochs):
        for idx in boot[torch.randperm(len(boot))].split(32):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    torch.save(net.state_dict(), f"member_{member}.pt")
    return net, loss.item()


def main():
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y = table(320, 0)
    net, loss = fit_member(rank, x, y)
    print(f"member {rank} loss {loss:.4f}", flush=True)
    vx, vy = table(200, 1)
    with torch.no_grad():
        p = net(vx).softmax(1)
    dist.all_reduce(p)
    acc = (p.argmax(1) == vy).float().mean().item()
    if rank == 0:
        print(f"ensemble of {world}: accuracy {acc:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
