import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def play(number, generator):
    """What is seen, what was done, and what came of it."""
    seen = torch.randn(number, 4, generator=generator)
    actions = torch.randint(0, 2, (number,), generator=generator)
    return seen, actions, seen[:, 0] * (2 * actions - 1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(rank)
    policy = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    baseline = torch.zeros(())
    for _ in range(20):
        seen, actions, returns = play(16, generator)
        chances = torch.distributions.Categorical(logits=policy(seen))
        loss = -(chances.log_prob(actions) * (returns - baseline)).mean()
        baseline = 0.9 * baseline + 0.1 * returns.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
