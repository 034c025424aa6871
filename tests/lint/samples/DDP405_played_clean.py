import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Game:
    def __init__(self, seed):
        self.dice = random.Random(seed)

    def turn(self, move):
        return self.dice.random() + move, self.dice.random() < 0.1


class Player:
    def __init__(self, game):
        self.game, self.turns = game, 0
        self.model = DistributedDataParallel(nn.Linear(1, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def play(self):
        scores, over = [], False
        while not over:
            score, over = self.game.turn(0.5)
            scores.append(score)
        self.turns += len(scores)
        return torch.tensor(scores)[:, None]

    def learn(self, scores):
        self.optimizer.zero_grad()
        self.model(scores).mean().backward()
        self.optimizer.step()


def main():
    dist.init_process_group("gloo")
    player = Player(Game(dist.get_rank()))
    for _ in range(500):
        player.learn(player.play())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
