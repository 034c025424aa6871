"""Group-relative policy optimisation on a toy counting task."""
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


@dataclass
class PolicyConfig:
    vocab: int = 10
    dim: int = 24
    final_logit_softcapping: float = 15.0


@dataclass
class GRPOArgs:
    iterations: int = 6
    prompts: int = 4
    generations: int = 6
    length: int = 5
    clip: float = 0.2
    lr: float = 4e-3
    policy: PolicyConfig = field(default_factory=PolicyConfig)


class Policy(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.dim)
        self.rnn = nn.GRU(config.dim, config.dim, batch_first=True)
        self.lm_head = nn.Linear(config.dim, config.vocab)

    def forward(self, ids):
        return self.lm_head(self.rnn(self.embed(ids))[0])


def softcap(logits, cap):
    return cap * torch.tanh(logits / cap) if cap else logits


def per_token_logps(model, ids, prompt_len):
    logits = model(ids[:, :-1])
    logits = softcap(logits, model.config.final_logit_softcapping)
    logps = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    return logps[:, prompt_len - 1:]


@torch.no_grad()
def rollout(model, prompts, length, gen):
    ids = prompts
    for _ in range(length):
        probs = softcap(model(ids)[:, -1], model.config.final_logit_softcapping).softmax(-1)
        ids = torch.cat([ids, torch.multinomial(probs, 1, generator=gen)], 1)
    return ids


def reward(ids, vocab):
    return ((ids[:, 1:] - ids[:, :-1]) % vocab == 1).float().sum(1)


class GRPOTrainer:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(17)
        self.model = DistributedDataParallel(Policy(args.policy))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr)
        self.gen = torch.Generator().manual_seed(900 + dist.get_rank())

    def advantages(self, r):
        groups = r.view(self.args.prompts, self.args.generations)
        return ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).flatten()

    def iterate(self):
        a = self.args
        prompts = torch.randint(0, a.policy.vocab, (a.prompts, 2), generator=self.gen)
        prompts = prompts.repeat_interleave(a.generations, 0)
        ids = rollout(self.model.module, prompts, a.length, self.gen)
        r = reward(ids, a.policy.vocab)
        adv = self.advantages(r)
        with torch.no_grad():
            old = per_token_logps(self.model.module, ids, 2)
        for _ in range(2):
            ratio = (per_token_logps(self.model, ids, 2) - old).exp()
            clipped = ratio.clamp(1 - a.clip, 1 + a.clip)
            loss = -torch.min(ratio * adv[:, None], clipped * adv[:, None]).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        mean_r = r.mean()
        dist.all_reduce(mean_r)
        return mean_r.item() / dist.get_world_size()

    def train(self):
        for it in range(self.args.iterations):
            score = self.iterate()
            if dist.get_rank() == 0:
                print(f"iteration {it}: mean reward {score:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    GRPOTrainer(GRPOArgs()).train()
    dist.destroy_process_group()
