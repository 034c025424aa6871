"""PPO on a suite of small control games with a head per game; gradients are averaged by hand (cleanrl multi-gpu)."""
import argparse
import os
import random
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions.categorical import Categorical

ACTIONS = (3, 5, 4)  # of each game of the suite


class VecSuite:
    """Each slot plays one game for an episode, then draws another; reward for the action that the state asks for."""

    def __init__(self, num_envs, seed, obs=8, horizon=12):
        self.rng = np.random.default_rng(seed)
        rules = np.random.default_rng(0)
        self.rule = [rules.normal(size=(obs, n)) for n in ACTIONS]
        self.n, self.obs, self.horizon = num_envs, obs, horizon
        self.game, self.left = np.zeros(num_envs, int), np.zeros(num_envs, int)
        self.state = np.zeros((num_envs, obs))
        for k in range(num_envs):
            self._start(k)

    def _start(self, k):
        self.game[k] = self.rng.choice(len(ACTIONS), p=(0.6, 0.32, 0.08))
        self.left[k] = self.rng.integers(4, self.horizon)
        self.state[k] = self.rng.normal(size=self.obs)

    def observe(self):
        return torch.tensor(self.state, dtype=torch.float32), torch.tensor(self.game)

    def step(self, action):
        reward, done = np.zeros(self.n), np.zeros(self.n)
        for k in range(self.n):
            scores = self.state[k] @ self.rule[self.game[k]]
            reward[k] = float(scores[action[k]] >= scores.max() - 1e-9)
            self.left[k] -= 1
            self.state[k] = self.rng.normal(size=self.obs)
            if self.left[k] == 0:
                done[k] = 1.0
                self._start(k)
        return torch.tensor(reward, dtype=torch.float32), torch.tensor(done, dtype=torch.float32)


class Agent(nn.Module):
    def __init__(self, obs=8, hidden=48):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actors = nn.ModuleList(nn.Linear(hidden, n) for n in ACTIONS)
        self.critic = nn.Linear(hidden, 1)

    def get_action_and_value(self, x, game, action=None):
        hidden = self.network(x)
        logp, entropy = torch.zeros(len(x)), torch.zeros(len(x))
        chosen = torch.zeros(len(x), dtype=torch.long) if action is None else action
        for g in game.unique().tolist():
            at = (game == g).nonzero().squeeze(1)
            probs = Categorical(logits=self.actors[g](hidden[at]))
            if action is None:
                chosen[at] = probs.sample()
            logp = logp.index_put((at,), probs.log_prob(chosen[at]))
            entropy = entropy.index_put((at,), probs.entropy())
        return chosen, logp, entropy, self.critic(hidden).squeeze(1)


def sync_gradients(agent, world_size):
    """One all-reduce for the whole agent instead of one a tensor."""
    all_grads_list = []
    for param in agent.parameters():
        if param.grad is None:
            param.grad = torch.zeros_like(param)
        all_grads_list.append(param.grad.view(-1))
    all_grads = torch.cat(all_grads_list)
    dist.all_reduce(all_grads, op=dist.ReduceOp.SUM)
    offset = 0
    for param in agent.parameters():
        n = param.numel()
        param.grad.data.copy_(all_grads[offset:offset + n].view_as(param.grad.data) / world_size)
        offset += n


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--local-num-envs", type=int, default=4)
    parser.add_argument("--num-steps", type=int, default=32)
    parser.add_argument("--num-minibatches", type=int, default=4)
    parser.add_argument("--update-epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    args = parse_args()
    local_rank, world_size = int(os.getenv("LOCAL_RANK", "0")), int(os.getenv("WORLD_SIZE", "1"))
    dist.init_process_group("gloo", rank=local_rank, world_size=world_size)
    args.seed += local_rank
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed - local_rank)
    agent = Agent()
    torch.manual_seed(args.seed)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    envs, start = VecSuite(args.local_num_envs, args.seed), time.time()
    batch_size = args.local_num_envs * args.num_steps
    for iteration in range(1, args.iterations + 1):
        store = []
        for _ in range(args.num_steps):
            obs, game = envs.observe()
            with torch.no_grad():
                action, logp, _, value = agent.get_action_and_value(obs, game)
            reward, done = envs.step(action.numpy())
            store.append((obs, game, action, logp, value, reward))
        b_obs, b_game, b_action, b_logp, b_value, b_reward = (torch.cat(part) for part in zip(*store))
        b_adv = b_reward - b_value
        b_inds = np.arange(batch_size)
        for _ in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for mb in np.array_split(b_inds, args.num_minibatches):
                mb = torch.as_tensor(mb)
                _, logp, entropy, value = agent.get_action_and_value(b_obs[mb], b_game[mb], b_action[mb])
                ratio = (logp - b_logp[mb]).exp()
                adv = (b_adv[mb] - b_adv[mb].mean()) / (b_adv[mb].std() + 1e-8)
                pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
                loss = pg_loss - 0.01 * entropy.mean() + 0.5 * (value - b_reward[mb]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                if world_size > 1:
                    sync_gradients(agent, world_size)
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        stats = torch.stack([b_reward.sum(), torch.tensor(float(batch_size))])
        dist.all_reduce(stats)
        if local_rank == 0 and iteration % 4 == 0:
            print(f"iteration {iteration} reward {stats[0] / stats[1]:.3f} SPS "
                  f"{int(iteration * stats[1] / (time.time() - start))}", flush=True)
    dist.destroy_process_group()
