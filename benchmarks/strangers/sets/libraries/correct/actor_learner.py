"""One learner (rank 0) and some actors: weights go out, trajectories come back, a stop word ends it."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import socket

ARMS, ROUNDS, PULLS = 6, 12, 32
GO, STOP = 1.0, 0.0


def payouts():
    return torch.linspace(-1, 1, ARMS)


def policy():
    torch.manual_seed(0)
    return nn.Linear(1, ARMS)


def flat(net):
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()


def learner(world):
    net = policy()
    opt = torch.optim.Adam(net.parameters(), lr=0.05)
    one = torch.ones(1, 1)
    for r in range(ROUNDS):
        for actor in range(1, world):
            dist.send(torch.tensor([GO]), dst=actor)
            dist.send(flat(net), dst=actor)
        opt.zero_grad()
        gained = 0.0
        for actor in range(1, world):
            arms, rewards = torch.empty(PULLS, dtype=torch.long), torch.empty(PULLS)
            dist.recv(arms, src=actor)
            dist.recv(rewards, src=actor)
            logp = net(one).log_softmax(1)[0, arms]
            (-(rewards - rewards.mean()) * logp).mean().backward()
            gained += rewards.mean().item()
        opt.step()
        mean = gained / (world - 1)
        if r % 4 == 0:
            print(f"round {r}: mean reward {mean:.3f}", flush=True)
        if mean > 0.95:
            break
    for actor in range(1, world):
        dist.send(torch.tensor([STOP]), dst=actor)


def actor(rank):
    net, one = policy(), torch.ones(1, 1)
    gen = torch.Generator().manual_seed(rank * 31)
    word, weights = torch.empty(1), torch.empty_like(flat(net))
    while True:
        dist.recv(word, src=0)
        if word.item() == STOP:
            return
        dist.recv(weights, src=0)
        nn.utils.vector_to_parameters(weights, net.parameters())
        with torch.no_grad():
            probs = net(one).softmax(1).expand(PULLS, -1)
            arms = torch.multinomial(probs, 1, generator=gen).squeeze(1)
        rewards = payouts()[arms] + 0.3 * torch.randn(PULLS, generator=gen)
        dist.send(arms, dst=0)
        dist.send(rewards, dst=0)


def main(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    if rank == 0:
        learner(world)
    else:
        actor(rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(main, args=(3, port), nprocs=3)
