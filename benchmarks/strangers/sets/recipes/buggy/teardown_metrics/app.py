from runtime import DistributedRuntime
from trainer import Trainer

if __name__ == "__main__":
    with DistributedRuntime() as rt:
        Trainer(rt, steps=20).run()
