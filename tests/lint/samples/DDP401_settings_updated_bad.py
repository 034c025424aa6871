import argparse

import torch
import torch.distributed as dist
import yaml


class Trainer:
    def __init__(self, net, settings):
        self.net = net
        self.settings = settings

    def save(self, step):
        if self.settings["rank"] == 0:
            torch.save(self.net.state_dict(), f"{self.settings['out']}/{step}.pt")
            dist.barrier()  # <-- DDP401


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    args.rank = dist.get_rank()
    with open(args.config) as file:
        settings = yaml.safe_load(file)
    settings.update(vars(args))
    settings.update(steps=100)
    trainer = Trainer(torch.nn.Linear(4, 1), settings)
    for step in range(settings["steps"]):
        trainer.save(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
