"""Hovering drone, one learner and one simulator process, REINFORCE on a linear policy."""
import torch
import torch.distributed as dist

LEARNER, SIM = 0, 1
STATE, HORIZON, EPISODES = 4, 30, 8


def simulate(weights, g):
    """Returns states, noise and return of a batch of episodes."""
    s = torch.randn(EPISODES, STATE, generator=g)
    states, noises, total = [], [], torch.zeros(EPISODES)
    for _ in range(HORIZON):
        noise = torch.randn(EPISODES, generator=g)
        thrust = s @ weights + 0.3 * noise
        states.append(s)
        noises.append(noise)
        s = 0.95 * s + 0.1 * torch.stack([thrust, s[:, 0], -thrust, s[:, 2]], 1)
        total -= (s ** 2).sum(1) + 0.01 * thrust ** 2
    return torch.stack(states), torch.stack(noises), total


def learner(updates, target):
    weights = torch.zeros(STATE)
    states = torch.empty(HORIZON, EPISODES, STATE)
    noises, total = torch.empty(HORIZON, EPISODES), torch.empty(EPISODES)
    best = -float("inf")
    for u in range(updates):
        dist.send(weights, dst=SIM, tag=1)
        for buffer, tag in ((states, 2), (noises, 3), (total, 4)):
            dist.recv(buffer, src=SIM, tag=tag)
        adv = (total - total.mean()) / (total.std() + 1e-6)
        grad = (states * (noises * adv).unsqueeze(-1)).mean((0, 1)) / 0.3
        weights += 0.05 * grad
        best = max(best, total.mean().item())
        if u % 10 == 0:
            print(f"update {u} return {total.mean():.2f}", flush=True)
        if total.mean() > target:
            break
    dist.send(torch.full((STATE,), float("nan")), dst=SIM, tag=1)
    return best


def simulator(seed):
    g = torch.Generator().manual_seed(seed)
    weights, served = torch.empty(STATE), 0
    while True:
        dist.recv(weights, src=LEARNER, tag=1)
        if weights.isnan().any():
            return served
        for tensor, tag in zip(simulate(weights, g), (2, 3, 4)):
            dist.send(tensor.contiguous(), dst=LEARNER, tag=tag)
        served += 1


if __name__ == "__main__":
    dist.init_process_group("gloo")
    if dist.get_rank() == LEARNER:
        result = learner(updates=60, target=-5.0)
    else:
        result = simulator(seed=5)
    reports = [None] * 2 if dist.get_rank() == LEARNER else None
    dist.gather_object(result, reports, dst=LEARNER)
    if reports:
        print(f"best return {reports[LEARNER]:.2f}, {reports[SIM]} batches simulated", flush=True)
    dist.destroy_process_group()
