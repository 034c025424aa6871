from torch import multiprocessing


class Job:
    def __init__(self, ranks):
        self.ranks = ranks

    def start(self):
        multiprocessing.spawn(work, nprocs=self.ranks)


def work(index):
    print(index)


def fork():
    multiprocessing.start_processes(work, nprocs=2, start_method="fork")


if __name__ == "__main__":
    job = Job(2)
    job.start()
