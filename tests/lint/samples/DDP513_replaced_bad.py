import os
import shutil
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Keeper:
    """Checkpoints of all ranks in one folder, which the first of them puts in its place."""

    def __init__(self, folder, model):
        self.folder, self.model, self.step = folder, model, 0

    def place(self):
        return os.path.join(self.folder, "newest")

    def keep(self):
        draft = os.path.join(self.folder, f"draft-{self.step}")
        dcp.save({"model": self.model.state_dict()}, checkpoint_id=draft)
        dist.barrier()
        if dist.get_rank() == 0:
            if os.path.isdir(self.place()):
                shutil.rmtree(self.place())
            shutil.move(draft, self.place())
        dist.barrier()

    def resume(self):
        found = False
        if dist.get_rank() == 0:
            found = os.path.isdir(self.place())  # <-- DDP513
        if not found:
            print("nothing to resume")
            return
        state = {"model": self.model.state_dict()}
        dcp.load(state, checkpoint_id=self.place())
        self.model.load_state_dict(state["model"])


def main(folder):
    dist.init_process_group("gloo")
    model = torch.nn.Linear(8, 1)
    keeper = Keeper(folder, model)
    keeper.resume()
    for _ in range(3):
        keeper.step += 1
        keeper.keep()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
