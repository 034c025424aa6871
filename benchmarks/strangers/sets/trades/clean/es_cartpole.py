"""Evolution strategies on a small cart-pole, one master and some workers.

The master keeps theta; every generation the workers evaluate their share of
the population and send (index, return) pairs back, one message each.

    torchrun --nproc_per_node 3 es_cartpole.py --pop 16
"""
import argparse
import math

import torch
import torch.distributed as dist

OBS, HID, ACT = 4, 8, 1
N_PARAMS = OBS * HID + HID + HID * ACT


class Cart:
    g, mc, mp, l, dt = 9.8, 1.0, 0.1, 0.5, 0.02

    def __init__(self, seed):
        gen = torch.Generator().manual_seed(seed)
        self.s = ((torch.rand(4, generator=gen) - 0.5) * 0.1).tolist()

    def step(self, force):
        x, xd, th, thd = self.s
        m = self.mc + self.mp
        tmp = (force + self.mp * self.l * thd ** 2 * math.sin(th)) / m
        tha = (self.g * math.sin(th) - math.cos(th) * tmp) / (
            self.l * (4 / 3 - self.mp * math.cos(th) ** 2 / m)
        )
        xa = tmp - self.mp * self.l * tha * math.cos(th) / m
        self.s = [x + self.dt * xd, xd + self.dt * xa, th + self.dt * thd, thd + self.dt * tha]
        return abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21


def policy(theta, obs):
    w1 = theta[: OBS * HID].view(HID, OBS)
    b1 = theta[OBS * HID: OBS * HID + HID]
    w2 = theta[OBS * HID + HID:].view(ACT, HID)
    return 10.0 * torch.tanh(w2 @ torch.tanh(w1 @ obs + b1)).item()


def rollout(theta, seed, horizon):
    env, total = Cart(seed), 0
    for _ in range(horizon):
        if env.step(policy(theta, torch.tensor(env.s))):
            break
        total += 1
    return float(total)


def noise_of(generation, index):
    g = torch.Generator().manual_seed(generation * 1000 + index)
    return torch.randn(N_PARAMS, generator=g)


def master(args):
    n_workers = dist.get_world_size() - 1
    theta = torch.zeros(N_PARAMS)
    for gen in range(args.generations):
        dist.broadcast(theta, src=0)
        returns = torch.zeros(args.pop)
        for i in range(args.pop):
            msg = torch.zeros(2)
            dist.recv(msg, src=1 + i % n_workers)
            returns[int(msg[0])] = msg[1]
        score = (returns - returns.mean()) / (returns.std() + 1e-6)
        step = sum(score[i] * noise_of(gen, i) for i in range(args.pop))
        theta += args.lr / (args.pop * args.sigma) * step
        print(f"gen {gen}: mean return {returns.mean():.1f} best {returns.max():.0f}", flush=True)


def worker(args, rank):
    n_workers = dist.get_world_size() - 1
    theta = torch.zeros(N_PARAMS)
    for gen in range(args.generations):
        dist.broadcast(theta, src=0)
        for i in range(rank - 1, args.pop, n_workers):
            ret = rollout(theta + args.sigma * noise_of(gen, i), gen, args.horizon)
            dist.send(torch.tensor([float(i), ret]), dst=0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pop", type=int, default=21)
    ap.add_argument("--generations", type=int, default=5)
    ap.add_argument("--horizon", type=int, default=60)
    ap.add_argument("--sigma", type=float, default=0.3)
    ap.add_argument("--lr", type=float, default=0.3)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    if dist.get_rank() == 0:
        master(args)
    else:
        worker(args, dist.get_rank())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
