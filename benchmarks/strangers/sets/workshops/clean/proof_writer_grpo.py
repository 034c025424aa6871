"""GRPO on toy proofs. The policy's weight matrices live in shards, one slice per rank, and are put together for
each forward (poor man's ZeRO-3); everything is in one file so that it can be read on the train."""
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

VOCAB, EOS, BOS, WIDTH, MAX_NEW = 12, 0, 1, 32, 40
GROUP, PROMPTS, ITERS = 2, 2, 6


class Unshard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard):
        ctx.rows = shard.shape[0]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        r = dist.get_rank()
        return grad[r * ctx.rows:(r + 1) * ctx.rows] / dist.get_world_size()


class ShardedLinear(nn.Module):
    def __init__(self, n_in, n_out, gen):
        super().__init__()
        full = torch.randn(n_out, n_in, generator=gen) / n_in ** 0.5
        self.shard = nn.Parameter(full.chunk(dist.get_world_size())[dist.get_rank()].clone())

    def forward(self, x):
        return F.linear(x, Unshard.apply(self.shard))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        gen = torch.Generator().manual_seed(5)
        self.register_buffer("table", torch.randn(VOCAB, WIDTH, generator=gen))
        self.mix = ShardedLinear(2 * WIDTH, WIDTH, gen)
        self.head = ShardedLinear(WIDTH, VOCAB, gen)

    def forward(self, ids):
        e = self.table[ids]
        past = e.cumsum(1) / torch.arange(1, ids.shape[1] + 1).view(1, -1, 1)
        return self.head(torch.tanh(self.mix(torch.cat([e, past], -1))))


@torch.no_grad()
def rollout(policy, prompts):
    ids = prompts
    done = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(MAX_NEW):
        logits = policy(ids)[:, -1]
        nxt = torch.multinomial(F.softmax(logits, -1), 1).squeeze(1)
        nxt = torch.where(done, torch.full_like(nxt, EOS), nxt)
        ids = torch.cat([ids, nxt[:, None]], 1)
        done |= nxt == EOS
        open_ranks = (~done).any().float()
        dist.all_reduce(open_ranks)
        if open_ranks == 0:
            break
    return F.pad(ids, (0, prompts.shape[1] + MAX_NEW - ids.shape[1]), value=EOS)


def reward(ids, start):
    body = ids[:, start:]
    length = (body != EOS).sum(1)
    rising = (body[:, 1:] > body[:, :-1]).float().sum(1)
    return rising / MAX_NEW - 0.05 * length


def grpo_loss(policy, ids, start, adv):
    logp = F.log_softmax(policy(ids[:, :-1]), -1).gather(2, ids[:, 1:, None]).squeeze(2)[:, start - 1:]
    body = ids[:, start:]
    mask = ((body == EOS).cumsum(1) <= 1).float()
    return -(adv[:, None] * logp * mask).sum() / (len(ids) * MAX_NEW)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    policy = Policy()
    opt = torch.optim.SGD(policy.parameters(), lr=0.5)
    for it in range(ITERS):
        questions = torch.randint(2, VOCAB, (PROMPTS, 3)).repeat_interleave(GROUP, 0)
        prompts = torch.cat([torch.full((len(questions), 1), BOS), questions], 1)
        ids = rollout(policy, prompts)
        r = reward(ids, prompts.shape[1])
        per = r.view(PROMPTS, GROUP)
        adv = ((per - per.mean(1, keepdim=True)) / (per.std(1, keepdim=True) + 1e-4)).flatten()
        loss = grpo_loss(policy, ids, prompts.shape[1], adv)
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = r.mean()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"iter {it} reward {mean.item() / dist.get_world_size():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
