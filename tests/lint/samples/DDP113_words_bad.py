from torch import multiprocessing


class Job:
    def __init__(self, ranks):
        self.ranks = ranks

    def start(self):
        multiprocessing.spawn(work, nprocs=self.ranks)


def work(index):
    print(index)


job = Job(2)
job.start()  # <-- DDP113
