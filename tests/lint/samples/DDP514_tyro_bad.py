import dataclasses
import pathlib
import shutil

import torch
import torch.distributed as dist
import tyro


@dataclasses.dataclass(frozen=True)
class Plan:
    name: str
    root: str = "/shared/runs"
    overwrite: bool = False

    @property
    def folder(self):
        return pathlib.Path(self.root) / self.name


PLANS = {each.name: (each.name, each) for each in (Plan("small"), Plan("large"))}


def main(plan):
    dist.init_process_group("gloo")
    if plan.overwrite and plan.folder.exists():
        shutil.rmtree(plan.folder)  # <-- DDP514
    plan.folder.mkdir(parents=True, exist_ok=True)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        sgd.zero_grad()
        net(torch.rand(5, 2)).sum().backward()
        sgd.step()
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), plan.folder / "net.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(tyro.extras.overridable_config_cli(PLANS))
