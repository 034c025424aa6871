import torch
import torch.distributed as dist


class Saver:
    def __init__(self, path):
        self.path, self.leader = path, dist.get_rank() == 0

    def write(self, state):
        torch.save(state, self.path)

    def loop(self, states):
        for state in states:
            if self.leader:
                try:
                    self.write(state)
                except OSError as error:
                    print(error)
                    break  # <-- DDP511
            dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Saver("state.pt").loop([{}, {}])
