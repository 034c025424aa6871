import hydra_free_config as config
import torch
import torch.distributed as dist

from ssl_toy.trainer import SSLTrainer


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    SSLTrainer(config.load()).fit()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
