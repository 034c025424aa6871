"""Group relative policy optimisation on a toy bandit-of-sequences task."""
import copy
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


@dataclass
class Args:
    prompts: int = 8
    group: int = 6
    length: int = 5
    iters: int = 10
    inner: int = 2
    clip: float = 0.2
    kl: float = 0.01
    lr: float = 5e-3


class LM(nn.Module):
    def __init__(self, vocab=12, d=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)


def unwrap(m):
    return m.module if isinstance(m, DistributedDataParallel) else m


@torch.no_grad()
def generate(model, prompt, n):
    ids = prompt
    for _ in range(n):
        p = unwrap(model)(ids)[:, -1].softmax(-1)
        ids = torch.cat([ids, torch.multinomial(p, 1)], 1)
    return ids


def token_logps(model, ids, n):
    logits = unwrap(model)(ids[:, :-1])
    lp = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    return lp[:, -n:]


def reward(ids, n):
    tail = ids[:, -n:]
    return (tail == ids[:, :1]).float().mean(1)


def main(a=Args()):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    policy = DistributedDataParallel(LM())
    ref = copy.deepcopy(policy.module).eval().requires_grad_(False)
    opt = torch.optim.Adam(policy.parameters(), lr=a.lr)
    torch.manual_seed(1000 + rank)
    for it in range(a.iters):
        prompt = torch.randint(12, (a.prompts, 2)).repeat_interleave(a.group, 0)
        ids = generate(policy, prompt, a.length)
        r = reward(ids, a.length).view(a.prompts, a.group)
        adv = ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        with torch.no_grad():
            old = token_logps(policy, ids, a.length)
            base = token_logps(ref, ids, a.length)
        for _ in range(a.inner):
            new = token_logps(policy, ids, a.length)
            ratio = (new - old).exp()
            gain = torch.min(ratio * adv, ratio.clamp(1 - a.clip, 1 + a.clip) * adv)
            kl = (base - new).exp() - (base - new) - 1
            loss = -(gain - a.kl * kl).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            opt.step()
        mean_r = r.mean()
        dist.all_reduce(mean_r)
        if rank == 0:
            print(f"it {it} reward {mean_r.item() / dist.get_world_size():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
