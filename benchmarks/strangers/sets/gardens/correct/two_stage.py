import torch
import torch.distributed as dist
import torch.nn as nn

STEPS, N, MID = 60, 32, 24


def tokens(step):
    g = torch.Generator().manual_seed(step)
    x = torch.randint(0, 30, (N, 6), generator=g)
    return x, (x[:, 0] > x[:, 5]).long()


def lower_half():
    torch.manual_seed(1)
    emb = nn.Embedding(30, 8)
    lin = nn.Linear(48, MID)
    part = nn.ModuleList([emb, lin])
    opt = torch.optim.Adam(part.parameters(), lr=1e-2)
    for step in range(STEPS):
        x, _ = tokens(step)
        h = torch.relu(lin(emb(x).flatten(1)))
        dist.send(h.detach().contiguous(), dst=1)
        back = torch.empty_like(h)
        dist.recv(back, src=1)
        opt.zero_grad()
        h.backward(back)
        opt.step()


def upper_half():
    torch.manual_seed(2)
    head = nn.Sequential(nn.Linear(MID, 24), nn.ReLU(), nn.Linear(24, 2))
    opt = torch.optim.Adam(head.parameters(), lr=1e-2)
    for step in range(STEPS):
        _, y = tokens(step)
        h = torch.empty(N, MID)
        dist.recv(h, src=0)
        h.requires_grad_(True)
        out = head(h)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        dist.send(h.grad, dst=0)
        opt.step()
        if step % 15 == 14:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        lower_half()
    else:
        upper_half()
    dist.barrier()
    dist.destroy_process_group()
