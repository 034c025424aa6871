"""Pendulum swing up with discrete torques; every process steps its own environments."""
import copy
import os
import socket
from collections import deque

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TORQUES = np.array([-2.0, 0.0, 2.0])


class Pendulums:
    """A small batch of pendulums integrated with semi-implicit Euler."""

    def __init__(self, count, rng):
        self.rng = rng
        self.angle = rng.uniform(-np.pi, np.pi, count)
        self.speed = rng.uniform(-1, 1, count)

    def observe(self):
        return np.stack([np.cos(self.angle), np.sin(self.angle), self.speed / 8], 1).astype(np.float32)

    def step(self, action):
        torque = TORQUES[action]
        wrapped = (self.angle + np.pi) % (2 * np.pi) - np.pi
        reward = -(wrapped**2 + 0.1 * self.speed**2 + 0.001 * torque**2) / 16
        self.speed = np.clip(self.speed + 0.05 * (15 * np.sin(self.angle) + 3 * torque), -8, 8)
        self.angle = self.angle + 0.05 * self.speed
        return self.observe(), reward.astype(np.float32)


class Replay:
    def __init__(self, size, rng):
        self.rows = deque(maxlen=size)
        self.rng = rng

    def push(self, obs, action, reward, after):
        self.rows.extend(zip(obs, action, reward, after))

    def draw(self, n):
        picks = self.rng.integers(0, len(self.rows), n)
        cols = zip(*(self.rows[i] for i in picks))
        return [torch.as_tensor(np.stack(c)) for c in cols]


def q_network():
    return nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, len(TORQUES)))


class Agent:
    def __init__(self, rank, seed, tau=0.005, gamma=0.97):
        torch.manual_seed(seed + rank)
        self.rng = np.random.default_rng(seed + rank)
        net = q_network()
        self.target = copy.deepcopy(net).requires_grad_(False)
        self.online = DistributedDataParallel(net)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=1e-3)
        self.tau, self.gamma = tau, gamma

    @torch.no_grad()
    def act(self, obs, epsilon):
        best = self.online.module(torch.from_numpy(obs)).argmax(1).numpy()
        explore = self.rng.random(len(obs)) < epsilon
        return np.where(explore, self.rng.integers(0, len(TORQUES), len(obs)), best)

    def learn(self, obs, action, reward, after):
        with torch.no_grad():
            goal = reward + self.gamma * self.target(after).max(1).values
        value = self.online(obs).gather(1, action[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.module.parameters()):
                slow.lerp_(fast, self.tau)
        return loss.item()


def train(rank):
    agent = Agent(rank, seed=70)
    env = Pendulums(8, agent.rng)
    memory = Replay(5000, agent.rng)
    obs = env.observe()
    returns = 0.0
    for step in range(240):
        action = agent.act(obs, max(0.05, 1 - step / 120))
        after, reward = env.step(action)
        memory.push(obs, action, reward, after)
        obs = after
        returns += reward.mean()
        if step >= 20:
            loss = agent.learn(*memory.draw(64))
            if rank == 0 and step % 60 == 0:
                print(f"step {step} loss {loss:.4f} mean reward {returns / (step + 1):.3f}", flush=True)
    dist.barrier()


def worker(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    train(rank)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(2, port), nprocs=2)


if __name__ == "__main__":
    main()
