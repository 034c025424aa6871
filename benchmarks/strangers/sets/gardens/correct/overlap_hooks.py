import torch
import torch.distributed as dist
import torch.nn as nn


class Overlap:
    """Starts the sum of each gradient as soon as it is ready; `finish` waits for them all."""

    def __init__(self, net):
        self.world = dist.get_world_size()
        self.net, self.pending = net, []
        for t in [*net.parameters(), *net.buffers()]:
            dist.broadcast(t.data, src=0)
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(self._launch)

    def _launch(self, p):
        self.pending.append((p, dist.all_reduce(p.grad, async_op=True)))

    def finish(self):
        for p, job in self.pending:
            job.wait()
            p.grad.div_(self.world)
        self.pending.clear()


def clicks(rank, step, n=48):
    g = torch.Generator().manual_seed(7919 * rank + step)
    a = torch.randint(0, 100, (n,), generator=g)
    b = torch.randint(0, 80, (n,), generator=g)
    return a, b, ((a + b) % 4 == 0).float()


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Embedding(100, 16), nn.Embedding(80, 16)
        self.top = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, a, b):
        return self.top(torch.cat([self.a(a), self.b(b)], 1)).squeeze(1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    net = Ranker()
    sync = Overlap(net)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(100):
        a, b, y = clicks(rank, step)
        loss = nn.functional.binary_cross_entropy_with_logits(net(a, b), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        sync.finish()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        if step % 25 == 24 and rank == 0:
            print(f"step {step + 1} own loss {loss.item():.4f} |g| {norm.item():.3f}", flush=True)
    check = nn.utils.parameters_to_vector(net.parameters()).detach()
    other = check.clone()
    dist.broadcast(other, src=0)
    print(f"[{rank}] as rank 0: {torch.equal(check, other)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
