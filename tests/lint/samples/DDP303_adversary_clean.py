import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def judge(critic, optimizer, real, made):
    optimizer.zero_grad()
    scores = critic(torch.cat([real, made.detach()]))
    real_score, made_score = scores.chunk(2)
    (F.softplus(-real_score).mean() + F.softplus(made_score).mean()).backward()
    optimizer.step()


def deceive(maker, critic, optimizer, noise):
    """What the critic gets of a gradient here is forgotten before its own step."""
    optimizer.zero_grad()
    F.softplus(-critic.module(maker(noise))).mean().backward()
    optimizer.step()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(10 + dist.get_rank())
    maker = DistributedDataParallel(nn.Linear(4, 2))
    critic = DistributedDataParallel(nn.Linear(2, 1))
    of_maker = torch.optim.Adam(maker.parameters())
    of_critic = torch.optim.Adam(critic.parameters())
    for _ in range(1000):
        noise = torch.randn(64, 4)
        with torch.no_grad():
            made = maker.module(noise)
        judge(critic, of_critic, torch.randn(64, 2), made)
        deceive(maker, critic, of_maker, noise)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
